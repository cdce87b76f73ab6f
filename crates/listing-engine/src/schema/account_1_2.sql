-- What account databases were made with up to OpenStack Swift 1.2, and Swift 1.3 made otherwise.
-- Migrations leave it as it is: it is also found beside what later releases added.

CREATE TABLE container (
                ROWID INTEGER PRIMARY KEY AUTOINCREMENT,
                name TEXT UNIQUE,
                put_timestamp TEXT,
                delete_timestamp TEXT,
                object_count INTEGER,
                bytes_used INTEGER,
                deleted INTEGER DEFAULT 0
            );

CREATE INDEX ix_container_deleted ON container (deleted);

CREATE INDEX ix_container_name ON container (name);
