-- What container databases were made with up to OpenStack Swift 1.2, and Swift 1.3 made otherwise.
-- Migrations leave it as it is: it is also found beside what later releases added.

CREATE TABLE object (
                ROWID INTEGER PRIMARY KEY AUTOINCREMENT,
                name TEXT UNIQUE,
                created_at TEXT,
                size INTEGER,
                content_type TEXT,
                etag TEXT,
                deleted INTEGER DEFAULT 0
            );

CREATE INDEX ix_object_deleted ON object (deleted);
