-- What the credentials of jobs and attempts are signed with.
CREATE TABLE signing_key (
    one        BIGINT PRIMARY KEY CHECK (one = 1),
    key        TEXT NOT NULL,
    created_at BIGINT NOT NULL
);

-- Logs of attempts that ran on another host than their readers, in pieces as they were received. A
-- place is (segment, offset) of the worker's file; `content` is base64, since output is any bytes.
CREATE TABLE attempt_log (
    token       BIGINT NOT NULL,
    segment     BIGINT NOT NULL,
    at_offset   BIGINT NOT NULL,
    size        BIGINT NOT NULL,
    -- Received after the attempt was ended by somebody else than its worker.
    late        BIGINT NOT NULL,
    content     TEXT NOT NULL,
    received_at BIGINT NOT NULL,
    PRIMARY KEY (token, segment, at_offset)
);
