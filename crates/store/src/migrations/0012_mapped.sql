-- What an instance is mapped over, as JSON by key, if that was not known before its run began.
ALTER TABLE task_instance ADD COLUMN mapped TEXT;
