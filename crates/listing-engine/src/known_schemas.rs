//! Which schemas a database may have: those that OpenStack Swift's releases make and migrate to, and no other.
//!
//! A schema is code: its triggers and views run with our statements. A database that came from another machine could
//! bring a trigger that never ends, or one that drops rows. So what `sqlite_master` says is compared, once for each
//! opened connection, before anything else is asked or written (`connection.rs`).
//!
//! | group | choices |
//! |---|---|
//! | sync points | as today |
//! | rows | as today; up to 1.2 a unique name and other indices |
//! | figures (container) | a table, a view and policies; up to 1.13 one table |
//! | policies (account) | as today; as in 2.0; those that are missing, `migrate.rs` makes |
//! | shard ranges (container) | none, or as today |
//!
//! Columns that later releases add by `ALTER TABLE` may be missing, and stand in any order ([`LATER`]). The statements
//! are `schema/*.sql`; `tests/oracle.rs` has OpenStack's brokers make and migrate databases, and compares.
//! An index that an operator added, of columns alone, is accepted as well: it runs nothing and forbids nothing.
//! Always holds: of two texts that are taken for the same, SQLite makes the same: they differ in white space outside of
//! quotes, in a `;` at the end, or in the columns above.

use crate::Kind;
use rusqlite::Connection;
use std::collections::HashMap;
use std::sync::LazyLock;

/// What a new account database is made from.
pub(crate) const ACCOUNT: &str = concat!(
    include_str!("schema/sync_points.sql"),
    include_str!("schema/account.sql")
);
/// What a new container database is made from.
pub(crate) const CONTAINER: &str = concat!(
    include_str!("schema/sync_points.sql"),
    include_str!("schema/container.sql")
);
const CONTAINER_1_2: &str = include_str!("schema/container_1_2.sql");
const CONTAINER_1_13: &str = include_str!("schema/container_1_13.sql");
const ACCOUNT_1_2: &str = include_str!("schema/account_1_2.sql");
const ACCOUNT_2_1: &str = include_str!("schema/account_2_1.sql");

/// What makes a container's figures by policies, in the order in which it is made.
pub(crate) const CONTAINER_POLICIES: &[&str] = &[
    "object_insert_policy_stat",
    "object_delete_policy_stat",
    "policy_stat",
    "container_info",
    "container_stat",
    "container_stat_update",
];
const SYNC_POINTS: &[&str] = &[
    "outgoing_sync",
    "incoming_sync",
    "outgoing_sync_insert",
    "outgoing_sync_update",
    "incoming_sync_insert",
    "incoming_sync_update",
];
const SHARD_RANGES: &[&str] = &["shard_range", "shard_range_update"];

/// Columns that some release adds to a table that an older one has made.
const LATER: &[(&str, &[&str])] = &[
    ("object", &["storage_policy_index INTEGER DEFAULT 0"]),
    ("container", &["storage_policy_index INTEGER DEFAULT 0"]),
    ("account_stat", &["metadata TEXT DEFAULT ''"]),
    (
        "container_stat",
        &[
            "metadata TEXT DEFAULT ''",
            "x_container_sync_point1 INTEGER DEFAULT -1",
            "x_container_sync_point2 INTEGER DEFAULT -1",
        ],
    ),
    ("policy_stat", &["container_count INTEGER DEFAULT 0"]),
    (
        "shard_range",
        &["reported INTEGER DEFAULT 0", "tombstones INTEGER DEFAULT -1"],
    ),
];

/// What SQLite makes itself: for AUTOINCREMENT, and where an operator has run ANALYZE.
const SQLITES_OWN: &str = "CREATE TABLE sqlite_sequence(name,seq)

CREATE TABLE sqlite_stat1(tbl,idx,stat)

CREATE TABLE sqlite_stat4(tbl,idx,neq,nlt,ndlt,sample)";

/// Longer names are cut in messages.
const NAME_SHOWN: usize = 64;

/// What a database's schema is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SchemaStanding {
    /// Nothing is missing.
    Current,
    /// An older release's, or one that was migrated.
    Older,
    /// Nothing that Swift makes, for this reason.
    Foreign(String),
}

/// Compares the schema of an open database with those of its kind.
pub(crate) fn examine(kind: Kind, connection: &Connection) -> rusqlite::Result<SchemaStanding> {
    match kind {
        Kind::Account => ACCOUNTS.examine(connection),
        Kind::Container => CONTAINERS.examine(connection),
    }
}

static ACCOUNTS: LazyLock<KnownSchemas> = LazyLock::new(KnownSchemas::of_accounts);
static CONTAINERS: LazyLock<KnownSchemas> = LazyLock::new(KnownSchemas::of_containers);

/// A statement that some release runs.
struct Statement {
    /// `table`, `index`, `trigger` or `view`.
    class: String,
    name: String,
}

/// Sets of statements are bit sets; the numbers of statements are their bits.
type Set = u64;

/// The statements of one kind of database, and which go together.
struct KnownSchemas {
    word: &'static str,
    statements: Vec<Statement>,
    /// By their texts as Swift 2.38 leaves them in `sqlite_master`, so that nothing needs to be normalised there.
    verbatim: HashMap<&'static str, usize>,
    /// By their normalised texts without later columns.
    normal: HashMap<String, usize>,
    /// Of each group exactly one choice is there.
    groups: Vec<Vec<Set>>,
    /// What a database has to which nothing needs to be added.
    current: Set,
    /// What may be there or not.
    optional: Set,
}

impl KnownSchemas {
    fn of_containers() -> Self {
        let mut known = Self::new("container", CONTAINER);
        let sync_points = known.named(CONTAINER, SYNC_POINTS);
        let rows = known.named(CONTAINER, &["object", "ix_object_deleted_name", "object_update"]);
        let old_rows =
            known.named(CONTAINER_1_2, &["object", "ix_object_deleted"]) | known.named(CONTAINER, &["object_update"]);
        let policies = known.named(CONTAINER, CONTAINER_POLICIES);
        let one_table = known.named(CONTAINER_1_13, &["container_stat", "object_insert", "object_delete"]);
        let shard_ranges = known.named(CONTAINER, SHARD_RANGES);
        known.groups = vec![
            vec![sync_points],
            vec![rows, old_rows],
            vec![policies, one_table],
            vec![0, shard_ranges],
        ];
        known.current = sync_points | rows | policies;
        known.optional |= shard_ranges;
        known
    }

    fn of_accounts() -> Self {
        let mut known = Self::new("account", ACCOUNT);
        let triggers = ["container_insert", "container_update", "container_delete"];
        let triggers = known.named(ACCOUNT, &triggers);
        let sync_points = known.named(ACCOUNT, SYNC_POINTS);
        let rows = known.named(ACCOUNT, &["container", "ix_container_deleted_name"]) | triggers;
        let old_rows = ["container", "ix_container_deleted", "ix_container_name"];
        let old_rows = known.named(ACCOUNT_1_2, &old_rows) | triggers;
        let figures = known.named(ACCOUNT, &["account_stat"]);
        known.groups = vec![vec![sync_points], vec![rows, old_rows], vec![figures]];
        known.current = sync_points | rows | figures;
        // OpenStack's migration is not one transaction: what it leaves when it is cut short, ours brings to an end.
        for name in ["policy_stat", "container_insert_ps", "container_delete_ps"] {
            let (now, old) = (known.named(ACCOUNT, &[name]), known.named(ACCOUNT_2_1, &[name]));
            known.groups.push(vec![now, old, 0]);
            known.current |= now;
        }
        known
    }

    fn new(word: &'static str, current: &'static str) -> Self {
        let mut known = Self {
            word,
            statements: vec![],
            verbatim: HashMap::new(),
            normal: HashMap::new(),
            groups: vec![],
            current: 0,
            optional: 0,
        };
        for text in statements(SQLITES_OWN) {
            known.optional |= 1 << known.number(text);
        }
        for text in statements(current).chain(statements(SQLITES_OWN)) {
            let number = known.number(text);
            known.verbatim.insert(text, number);
        }
        known
    }

    fn number(&mut self, text: &str) -> usize {
        let mut words = text.split(|c: char| c.is_ascii_whitespace() || c == '(').skip(1);
        let statement = Statement {
            class: words.next().unwrap_or_default().to_ascii_lowercase(),
            name: words.next().unwrap_or_default().to_owned(),
        };
        let normal = without_later_columns(&statement.name, normalised(text));
        let next = self.statements.len();
        let number = *self.normal.entry(normal).or_insert(next);
        if number == next {
            self.statements.push(statement);
        }
        number
    }

    /// The statements of `source` that make these.
    fn named(&mut self, source: &'static str, names: &[&str]) -> Set {
        let makes = |text: &str, name: &str| text.split_ascii_whitespace().nth(2) == Some(name);
        names.iter().fold(0, |set, name| {
            let text = statements(source).find(|text| makes(text, name)).unwrap_or_default();
            set | 1 << self.number(text)
        })
    }

    fn examine(&self, connection: &Connection) -> rusqlite::Result<SchemaStanding> {
        let encoding: String = connection.query_row("PRAGMA encoding", [], |row| row.get(0))?;
        if encoding != "UTF-8" {
            return Ok(SchemaStanding::Foreign(format!("its texts are {encoding}, not UTF-8")));
        }
        let (mut found, mut is_verbatim) = (0, true);
        let mut statement = connection.prepare("SELECT type, name, sql FROM sqlite_master")?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let text = |place| row.get_ref(place).map(|value| value.as_str().unwrap_or_default());
            let (class, name, sql) = (text(0)?, text(1)?, text(2)?);
            if sql.is_empty() && class == "index" && name.starts_with("sqlite_autoindex_") {
                continue;
            }
            if class == "index" && !self.names_index(name) && is_plain_index(sql) {
                continue;
            }
            let exactly = self.verbatim.get(sql);
            is_verbatim &= exactly.is_some();
            let by_meaning = || self.normal.get(&without_later_columns(name, normalised(sql)));
            let number = exactly.or_else(by_meaning).filter(|number| {
                let known = &self.statements[**number];
                known.class == class && known.name == name && found & (1 << **number) == 0
            });
            match number {
                Some(number) => found |= 1 << number,
                None => return Ok(SchemaStanding::Foreign(self.not_known(class, name))),
            }
        }
        Ok(self.standing(found, is_verbatim))
    }

    /// Whether some release makes an index of this name.
    fn names_index(&self, name: &str) -> bool {
        let makes = |statement: &Statement| statement.class == "index" && statement.name == name;
        self.statements.iter().any(makes)
    }

    fn standing(&self, found: Set, is_verbatim: bool) -> SchemaStanding {
        for choices in &self.groups {
            let all = choices.iter().fold(0, |all, choice| all | choice);
            if !choices.contains(&(found & all)) {
                let wanted = choices.iter().find(|choice| found & **choice != **choice).unwrap_or(&0);
                return SchemaStanding::Foreign(self.missing(wanted & !found));
            }
        }
        match is_verbatim && found & !self.optional == self.current & !self.optional {
            true => SchemaStanding::Current,
            false => SchemaStanding::Older,
        }
    }

    fn not_known(&self, class: &str, name: &str) -> String {
        let shown: String = name.chars().take(NAME_SHOWN).collect();
        let class: String = class.chars().take(NAME_SHOWN).collect();
        let word = self.word;
        format!("unexpected schema: {class} {shown:?} is not as OpenStack Swift makes it for {word} databases")
    }

    fn missing(&self, set: Set) -> String {
        let missing = self.statements.get(set.trailing_zeros() as usize);
        let (class, name) = missing.map_or(("", ""), |missing| (&missing.class, &missing.name));
        format!("unexpected schema: {class} {name} missing, or of another release than the rest")
    }
}

/// The statements of a file, which are separated by empty lines, as they stand in `sqlite_master`: without `;` and
/// comments.
fn statements(source: &'static str) -> impl Iterator<Item = &'static str> {
    let pieces = source.split("\n\n").map(str::trim);
    let statements = pieces.filter(|piece| piece.starts_with("CREATE"));
    statements.map(|piece| piece.strip_suffix(';').unwrap_or(piece))
}

/// Whether it makes an index of columns: not unique, not partial, without expressions and collations.
fn is_plain_index(sql: &str) -> bool {
    let is_name =
        |name: &str| !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    let normal = normalised(sql).to_ascii_uppercase();
    let parts = || {
        let (name, rest) = normal.strip_prefix("CREATE INDEX ")?.split_once(" ON ")?;
        let (table, columns) = rest.strip_suffix(')')?.split_once('(')?;
        Some(is_name(name) && is_name(table) && columns.split(',').all(is_name))
    };
    parts().unwrap_or(false)
}

/// The text with one space for white space outside of quotes, none where it separates nothing.
fn normalised(sql: &str) -> String {
    let mut normal = String::with_capacity(sql.len());
    let (mut quote, mut is_apart) = (None, false);
    for c in sql.trim().trim_end_matches(';').chars() {
        if let Some(end) = quote {
            normal.push(c);
            quote = quote.filter(|_| c != end);
            continue;
        }
        if c.is_ascii_whitespace() {
            is_apart = true;
            continue;
        }
        let separates = |c: char| matches!(c, '(' | ')' | ',' | ';');
        if is_apart && !separates(c) && !normal.ends_with(separates) {
            normal.push(' ');
        }
        is_apart = false;
        normal.push(c);
        quote = match c {
            '\'' | '"' | '`' => Some(c),
            '[' => Some(']'),
            _ => None,
        };
    }
    normal
}

/// The normalised statement that makes `table`, as it was before later releases added columns.
fn without_later_columns(table: &str, mut normal: String) -> String {
    let later = LATER.iter().find(|(name, _)| *name == table);
    let mut left = later.map_or(vec![], |(_, columns)| columns.to_vec());
    let begins = |columns: &str, column: &str| columns.strip_suffix(column)?.strip_suffix(',').map(str::len);
    while let Some(columns) = normal.strip_suffix(')') {
        let found = left.iter().enumerate();
        let last = found
            .filter_map(|(at, column)| Some((at, begins(columns, column)?)))
            .next();
        let Some((at, end)) = last else { break };
        left.remove(at);
        normal.truncate(end);
        normal.push(')');
    }
    normal
}

#[cfg(test)]
mod tests;
