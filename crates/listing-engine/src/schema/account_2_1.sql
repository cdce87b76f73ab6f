-- What account databases were made with in OpenStack Swift 2.0 and 2.1: no count of containers per policy.

CREATE TABLE policy_stat (
                storage_policy_index INTEGER PRIMARY KEY,
                object_count INTEGER DEFAULT 0,
                bytes_used INTEGER DEFAULT 0
            );

CREATE TRIGGER container_insert_ps AFTER INSERT ON container
    BEGIN
        INSERT OR IGNORE INTO policy_stat
            (storage_policy_index, object_count, bytes_used)
            VALUES (new.storage_policy_index, 0, 0);
        UPDATE policy_stat
        SET object_count = object_count + new.object_count,
            bytes_used = bytes_used + new.bytes_used
        WHERE storage_policy_index = new.storage_policy_index;
    END;

CREATE TRIGGER container_delete_ps AFTER DELETE ON container
    BEGIN
        UPDATE policy_stat
        SET object_count = object_count - old.object_count,
            bytes_used = bytes_used - old.bytes_used
        WHERE storage_policy_index = old.storage_policy_index;
    END;
