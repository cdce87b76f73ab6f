//! Lists of parameters as COSBench writes them: `containers=r(1,32);objects=u(1,50)`.
//!
//! Always holds: names are kept in their order, and none is there twice: of two the last counts. Case does not matter
//! in names.

use super::mistake::{WorkloadMistake, one_of};

/// Names and values.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Parameters(Vec<(String, String)>);

impl Parameters {
    /// Reads `name=value;name=value`. A value may hold `=`, but no `;`.
    pub fn parse(text: &str) -> Result<Self, WorkloadMistake> {
        let mut parameters = Self::default();
        for part in text.split(';').map(str::trim).filter(|part| !part.is_empty()) {
            let (name, value) = part
                .split_once('=')
                .ok_or_else(|| WorkloadMistake::value("config", part, "name=value, with ; between parameters"))?;
            parameters.set(name.trim(), value.trim());
        }
        Ok(parameters)
    }

    /// Gives a parameter a value, instead of any that it has.
    pub fn set(&mut self, name: &str, value: &str) {
        match self.0.iter_mut().find(|(known, _)| known.eq_ignore_ascii_case(name)) {
            Some((_, old)) => value.clone_into(old),
            None => self.0.push((name.to_owned(), value.to_owned())),
        }
    }

    /// The value of a parameter.
    pub fn get(&self, name: &str) -> Option<&str> {
        let mut all = self.0.iter();
        all.find(|(known, _)| known.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }

    /// The value of a parameter that must be there.
    pub fn need(&self, name: &str) -> Result<&str, WorkloadMistake> {
        self.get(name)
            .ok_or_else(|| WorkloadMistake::new(format!("config has no {name}, which is needed here")))
    }

    /// Whether a parameter is `true`; what is not there is not.
    pub fn flag(&self, name: &str) -> Result<bool, WorkloadMistake> {
        match self.get(name) {
            None => Ok(false),
            Some(value) if value.eq_ignore_ascii_case("true") => Ok(true),
            Some(value) if value.eq_ignore_ascii_case("false") => Ok(false),
            Some(other) => Err(WorkloadMistake::value(name, other, "true or false")),
        }
    }

    /// A whole number.
    pub fn number(&self, name: &str) -> Result<Option<u64>, WorkloadMistake> {
        let parse = |value: &str| {
            value
                .parse()
                .map_err(|_| WorkloadMistake::value(name, value, "a whole number"))
        };
        self.get(name).map(parse).transpose()
    }

    /// Those of `other` beside and instead of one's own.
    pub fn with(mut self, other: &Parameters) -> Self {
        for (name, value) in &other.0 {
            self.set(name, value);
        }
        self
    }

    /// Refuses what is none of `known`.
    pub fn allow(&self, known: &[&str]) -> Result<(), WorkloadMistake> {
        let is_known = |name: &str| known.iter().any(|word| word.eq_ignore_ascii_case(name));
        match self.0.iter().find(|(name, _)| !is_known(name)) {
            None => Ok(()),
            Some((name, _)) => {
                let allowed = one_of(known.iter().copied());
                Err(WorkloadMistake::new(format!("config has {name}=…: expected {allowed}")))
            }
        }
    }

    /// All, in their order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::Parameters;

    #[test]
    fn parameters_are_read_in_their_order() {
        let read = Parameters::parse(" a=1; URL=http://h/?x=y ;;a=2").unwrap();
        assert_eq!(read.iter().collect::<Vec<_>>(), [("a", "2"), ("URL", "http://h/?x=y")]);
        assert_eq!(read.get("url"), Some("http://h/?x=y"));
        assert_eq!(read.number("a"), Ok(Some(2)));
        let refused = read.allow(&["a", "b"]).unwrap_err();
        assert_eq!(refused.to_string(), "config has URL=…: expected a or b");
        assert!(Parameters::parse("a").unwrap_err().to_string().contains("name=value"));
    }
}
