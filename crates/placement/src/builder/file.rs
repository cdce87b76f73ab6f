//! The `.builder` file: a pickled dict, as OpenStack Swift's ring builder keeps it.
//!
//! Reading takes what 2.38 and its forebears wrote; writing gives all fields of 2.38.

use md5::{Digest, Md5};
use pickle::{ArrayCode, PickleLimits, Value};

use crate::device::Device;
use crate::error::BuilderError;
use crate::ring_data::next_part_power;

use super::{Entry, RingBuilder};

/// What OpenStack's builder knows of a device.
const DEVICE_FIELDS: [&str; 12] = [
    "region",
    "zone",
    "ip",
    "port",
    "device",
    "replication_ip",
    "replication_port",
    "meta",
    "weight",
    "id",
    "parts",
    "parts_wanted",
];

impl RingBuilder {
    /// Reads a `.builder` file.
    ///
    /// # Errors
    /// When it is no pickle of plain data, or no builder.
    pub fn from_bytes(file: &[u8]) -> Result<RingBuilder, BuilderError> {
        let value = pickle::loads(file, &PickleLimits::for_builder())?;
        let fields = Fields(&value);
        let part_power = fields.number("part_power")?;
        let min_part_hours = fields.number("min_part_hours")?;
        let mut builder = RingBuilder::new(part_power, fields.float("replicas")?, min_part_hours)?;
        let next = fields.optional("next_part_power", Value::int)?;
        builder.next_part_power =
            next_part_power(part_power, next).map_err(|next| BuilderError::NextPartPower { part_power, next })?;
        builder.devices = fields.devices()?;
        builder.devices_changed = fields.number::<u8>("devs_changed")? != 0;
        builder.version = fields.number("version")?;
        builder.overload = fields.optional("overload", Value::float)?.unwrap_or(0.0);
        builder.dev_id_bytes = fields.optional("dev_id_bytes", Value::int)?.unwrap_or(2) as u8;
        builder.rows = fields.rows(1 << part_power, &builder.devices)?;
        builder.moves_epoch = fields.optional("_last_part_moves_epoch", Value::int)?.unwrap_or(0);
        builder.gather_start = fields.optional("_last_part_gather_start", Value::int)?.unwrap_or(0);
        builder.moves = fields.moves(1 << part_power)?;
        builder.dispersion = fields.optional("dispersion", Value::float)?.unwrap_or(0.0);
        let keep = |name: &str, kept: &mut Value| {
            if let Some(found) = value.get(name) {
                *kept = found.clone();
            }
        };
        keep("_dispersion_graph", &mut builder.dispersion_graph);
        builder.removed = fields.removed(&builder.devices)?;
        builder.id = fields.optional("id", Value::text)?.map(str::to_owned);
        if !builder.ids_fit(builder.dev_id_bytes) {
            return Err(BuilderError::Field { field: "dev_id_bytes" });
        }
        Ok(builder)
    }

    /// The builder as a `.builder` file. A builder without an id gets one made of its content.
    pub fn to_bytes(&self) -> Vec<u8> {
        let id = self
            .id
            .clone()
            .unwrap_or_else(|| vocabulary::hex::encode(Md5::digest(pickle::dumps(&self.fields("")))));
        pickle::dumps(&self.fields(&id))
    }

    fn fields(&self, id: &str) -> Value {
        let rows = self.rows.iter().map(|row| {
            let code = if self.dev_id_bytes == 2 {
                ArrayCode::U16
            } else {
                ArrayCode::U32
            };
            Value::Array(code, row.iter().map(|&id| u64::from(id)).collect())
        });
        let rows: Vec<Value> = rows.collect();
        let removed = |&id: &u32| device_value(&self.devices[id as usize]);
        let mut moves: Vec<u64> = self.moves.iter().map(|&hours| u64::from(hours)).collect();
        moves.resize(1 << self.part_power, 0);
        dict([
            ("part_power", Value::Int(i64::from(self.part_power))),
            (
                "next_part_power",
                self.next_part_power.map_or(Value::None, |it| Value::Int(i64::from(it))),
            ),
            ("replicas", Value::Float(self.replicas)),
            ("min_part_hours", Value::Int(self.min_part_hours)),
            ("parts", Value::Int(1 << self.part_power)),
            ("devs", Value::List(self.devices.iter().map(device_value).collect())),
            ("devs_changed", Value::Bool(self.devices_changed)),
            ("dev_id_bytes", Value::Int(i64::from(self.dev_id_bytes))),
            ("version", Value::Int(self.version as i64)),
            ("overload", Value::Float(self.overload)),
            (
                "_replica2part2dev",
                if rows.is_empty() {
                    Value::None
                } else {
                    Value::List(rows)
                },
            ),
            ("_last_part_moves_epoch", Value::Int(self.moves_epoch)),
            ("_last_part_moves", Value::Array(ArrayCode::U8, moves)),
            ("_last_part_gather_start", Value::Int(self.gather_start)),
            ("_dispersion_graph", self.dispersion_graph.clone()),
            ("dispersion", Value::Float(self.dispersion)),
            ("_remove_devs", Value::List(self.removed.iter().map(removed).collect())),
            ("id", Value::str(id)),
        ])
    }
}

fn dict<'n>(fields: impl IntoIterator<Item = (&'n str, Value)>) -> Value {
    Value::Dict(
        fields
            .into_iter()
            .map(|(name, value)| (Value::str(name), value))
            .collect(),
    )
}

fn device_value(entry: &Option<Entry>) -> Value {
    let Some(Entry {
        device,
        parts,
        parts_wanted,
    }) = entry
    else {
        return Value::None;
    };
    let mut value = vec![
        ("region", Value::Int(i64::from(device.region))),
        ("zone", Value::Int(i64::from(device.zone))),
        ("ip", Value::str(&device.ip)),
        ("port", Value::Int(i64::from(device.port))),
        ("device", Value::str(&device.device)),
        ("replication_ip", Value::str(&device.replication_ip)),
        ("replication_port", Value::Int(i64::from(device.replication_port))),
        ("meta", Value::str(&device.meta)),
        ("weight", Value::Float(device.weight)),
        ("id", Value::Int(i64::from(device.id))),
        ("parts", Value::Int(*parts)),
    ];
    value.extend(parts_wanted.map(|wanted| ("parts_wanted", Value::Int(wanted))));
    value.extend(
        device
            .extra
            .iter()
            .map(|(name, value)| (name.as_str(), from_json(value))),
    );
    dict(value)
}

/// A plain value that another tool added.
fn from_json(value: &serde_json::Value) -> Value {
    match value {
        serde_json::Value::Bool(flag) => Value::Bool(*flag),
        serde_json::Value::String(text) => Value::str(text),
        serde_json::Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(number), _) => Value::Int(number),
            (None, Some(number)) => Value::Float(number),
            (None, None) => Value::None,
        },
        _ => Value::None,
    }
}

/// The dict, asked by name; a wrong answer is an error that names the field.
struct Fields<'v>(&'v Value);

impl<'v> Fields<'v> {
    /// A field that may be missing or None.
    fn optional<T>(
        &self,
        field: &'static str,
        read: impl Fn(&'v Value) -> Option<T>,
    ) -> Result<Option<T>, BuilderError> {
        match self.0.get(field) {
            None | Some(Value::None) => Ok(None),
            Some(value) => read(value).map(Some).ok_or(BuilderError::Field { field }),
        }
    }

    fn required<T>(&self, field: &'static str, read: impl Fn(&'v Value) -> Option<T>) -> Result<T, BuilderError> {
        self.optional(field, read)?.ok_or(BuilderError::Field { field })
    }

    fn number<T: TryFrom<i64>>(&self, field: &'static str) -> Result<T, BuilderError> {
        self.required(field, |value| T::try_from(value.int()?).ok())
    }

    fn float(&self, field: &'static str) -> Result<f64, BuilderError> {
        self.required(field, Value::float)
    }

    fn string(&self, field: &'static str) -> Result<String, BuilderError> {
        self.required(field, |value| value.text().map(str::to_owned))
    }

    fn devices(&self) -> Result<Vec<Option<Entry>>, BuilderError> {
        let devices = self.required("devs", Value::items)?.iter().enumerate();
        devices
            .map(|(place, value)| match value {
                Value::None => Ok(None),
                value => Fields(value).device(place).map(Some),
            })
            .collect()
    }

    fn device(&self, place: usize) -> Result<Entry, BuilderError> {
        let ip = self.string("ip")?;
        let port = self.number("port")?;
        let reads_port = |value: &Value| u16::try_from(value.int()?).ok();
        let reads_text = |value: &'v Value| value.text().map(str::to_owned);
        let device = Device {
            id: self.number("id")?,
            region: self
                .optional("region", |it| u32::try_from(it.int()?).ok())?
                .unwrap_or(1),
            zone: self.number("zone")?,
            weight: self.float("weight")?,
            replication_ip: self.optional("replication_ip", reads_text)?.unwrap_or(ip.clone()),
            replication_port: self.optional("replication_port", reads_port)?.unwrap_or(port),
            ip,
            port,
            device: self.string("device")?,
            meta: self.optional("meta", reads_text)?.unwrap_or_default(),
            extra: self.unknown(),
        };
        if device.id as usize != place {
            return Err(BuilderError::Field { field: "devs" });
        }
        Ok(Entry {
            device,
            parts: self.optional("parts", Value::int)?.unwrap_or(0),
            // OpenStack leaves a fraction here at times, with nothing behind the point.
            parts_wanted: self.optional("parts_wanted", |it| it.float().map(|wanted| wanted as i64))?,
        })
    }

    /// What other tools added to a device, as far as it is a plain value.
    fn unknown(&self) -> serde_json::Map<String, serde_json::Value> {
        let entries = self.0.entries().unwrap_or_default().iter();
        let entries = entries.filter_map(|(name, value)| Some((name.text()?, value)));
        let plain = |value: &Value| match value {
            Value::None => Some(serde_json::Value::Null),
            Value::Bool(flag) => Some((*flag).into()),
            Value::Int(number) => Some((*number).into()),
            Value::Float(number) => Some((*number).into()),
            Value::Str(text) => Some(text.as_str().into()),
            _ => None,
        };
        entries
            .filter(|(name, _)| !DEVICE_FIELDS.contains(name))
            .filter_map(|(name, value)| Some((name.to_owned(), plain(value)?)))
            .collect()
    }

    /// Ids of the devices that are to go: all of them are in the list of devices.
    fn removed(&self, devices: &[Option<Entry>]) -> Result<Vec<u32>, BuilderError> {
        let wrong = BuilderError::Field { field: "_remove_devs" };
        let items = self.optional("_remove_devs", Value::items)?.unwrap_or_default();
        let mut removed = Vec::with_capacity(items.len());
        for value in items {
            let id: u32 = Fields(value).number("id")?;
            let known = devices.get(id as usize).is_some_and(Option::is_some);
            if !known {
                return Err(wrong);
            }
            // OpenStack lists a device that was removed twice, twice.
            if !removed.contains(&id) {
                removed.push(id);
            }
        }
        Ok(removed)
    }

    /// The table: full rows but for the last, and only devices that are there.
    fn rows(&self, partitions: usize, devices: &[Option<Entry>]) -> Result<Vec<Vec<u32>>, BuilderError> {
        let wrong = BuilderError::Field {
            field: "_replica2part2dev",
        };
        let Some(rows) = self.optional("_replica2part2dev", Value::items)? else {
            return Ok(Vec::new());
        };
        let known = |id: u64| {
            devices.get(usize::try_from(id).ok()?)?.as_ref()?;
            u32::try_from(id).ok()
        };
        let read = |(place, row): (usize, &Value)| {
            let Value::Array(_, ids) = row else { return None };
            let full = ids.len() == partitions || (place + 1 == rows.len() && ids.len() < partitions);
            if full {
                ids.iter().map(|&id| known(id)).collect()
            } else {
                None
            }
        };
        rows.iter()
            .enumerate()
            .map(|row| read(row).ok_or(wrong.clone()))
            .collect()
    }

    fn moves(&self, partitions: usize) -> Result<Vec<u8>, BuilderError> {
        let wrong = BuilderError::Field {
            field: "_last_part_moves",
        };
        match self.optional("_last_part_moves", Some)? {
            None => Ok(Vec::new()),
            Some(Value::Array(ArrayCode::U8, moves)) if moves.len() == partitions => {
                Ok(moves.iter().map(|&hours| hours as u8).collect())
            }
            Some(_) => Err(wrong),
        }
    }
}
