-- Which scheduler has which DAG file now: a DAG is inactive once no live one has its file.
CREATE TABLE dag_file (
    job_id  TEXT NOT NULL,
    fileloc TEXT NOT NULL,
    PRIMARY KEY (job_id, fileloc)
);
