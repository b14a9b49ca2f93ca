-- Version 1. Names, texts and ids are bytea: bytes have one order everywhere, and a text may hold a zero.
-- No sequence, no foreign key, no trigger, no advisory lock: no conversation depends on another one, but for forks.

-- Its comment is `functions N`: the CRC-32 of the text of the functions that are there.
CREATE TABLE cs_schema (
  one      boolean PRIMARY KEY DEFAULT true CHECK (one),
  version  integer NOT NULL,
  -- The oldest version whose programs may still use it.
  oldest   integer NOT NULL,
  store_id bytea   NOT NULL
);

-- A row for each conversation: its head. One that was deleted stays, marked, while forks read its entries.
CREATE TABLE cs_conversation (
  conv_id            bytea    PRIMARY KEY,
  incarnation        bigint   NOT NULL,
  -- Grows with each change of this row: about the milliseconds since 1970.
  commit_no          bigint   NOT NULL,
  next_seq           bigint   NOT NULL,
  next_message       bigint   NOT NULL,
  last_hide          bigint   NOT NULL,
  last_meta          bigint   NOT NULL,
  created            bigint   NOT NULL,
  -- Exact, and in no index: an append that moves it within a minute touches no index.
  last_activity      bigint   NOT NULL,
  minute             bigint   NOT NULL,
  owner              bytea    NOT NULL,
  key                bytea,
  parent_id          bytea,
  parent_seq         bigint,
  parent_incarnation bigint,
  parent_commit      bigint,
  -- What the first record of a backup says of it.
  origin_hide        bigint   NOT NULL,
  origin_meta        bigint   NOT NULL,
  origin_message     bigint   NOT NULL,
  origin_commit      bigint   NOT NULL,
  title              bytea,
  -- 0: from no message yet, 1: from title_message, 2: from the caller.
  title_kind         smallint NOT NULL,
  title_message      bigint   NOT NULL,
  tags               bytea[]  NOT NULL,
  open_messages      bigint[] NOT NULL,
  interrupted        bigint[] NOT NULL,
  -- How often something in its own log was redacted.
  redactions         bigint   NOT NULL,
  deleted            boolean  NOT NULL
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02);

CREATE INDEX cs_conversation_list ON cs_conversation (owner, minute DESC) WHERE NOT deleted;
CREATE INDEX cs_conversation_tags ON cs_conversation USING gin (tags);
CREATE INDEX cs_conversation_forks ON cs_conversation (parent_id, parent_seq) WHERE parent_seq > 0;
CREATE INDEX cs_conversation_unfinished ON cs_conversation (conv_id)
  WHERE NOT deleted AND (cardinality(open_messages) > 0 OR cardinality(interrupted) > 0);

-- A row for each append. The body is version, checksum and entries; they are relative to their place.
CREATE TABLE cs_record (
  conv_id      bytea   NOT NULL,
  first_seq    bigint  NOT NULL,
  incarnation  bigint  NOT NULL,
  commit_no    bigint  NOT NULL,
  written      bigint  NOT NULL,
  base         bigint  NOT NULL,
  next_message bigint  NOT NULL,
  entries      bigint  NOT NULL,
  cut          boolean NOT NULL,
  body         bytea   NOT NULL,
  PRIMARY KEY (conv_id, first_seq)
) PARTITION BY HASH (conv_id);
DO $$
BEGIN
  FOR i IN 0..15 LOOP
    EXECUTE format('CREATE TABLE cs_record_%s PARTITION OF cs_record FOR VALUES WITH (MODULUS 16, REMAINDER %s)', i, i);
    EXECUTE format('ALTER TABLE cs_record_%s ALTER COLUMN body SET STORAGE EXTERNAL', i);
  END LOOP;
END $$;

-- Idempotency keys, by their digests, and what was answered.
CREATE TABLE cs_key (
  conv_id       bytea  NOT NULL,
  digest        bytea  NOT NULL,
  first_seq     bigint NOT NULL,
  last_seq      bigint NOT NULL,
  first_message bigint NOT NULL,
  messages      bigint NOT NULL,
  content       bytea  NOT NULL,
  PRIMARY KEY (conv_id, digest)
);

-- Providers' item ids, by their digests.
CREATE TABLE cs_item (
  conv_id bytea  NOT NULL,
  digest  bytea  NOT NULL,
  seq     bigint NOT NULL,
  PRIMARY KEY (conv_id, digest, seq)
);

-- Programs that write messages. Each holds a lease, in the time of this database.
CREATE TABLE cs_holder (
  holder bytea       PRIMARY KEY,
  until  timestamptz NOT NULL
);

-- Who writes which message, and which part of it came last: a part that is sent twice is written once.
CREATE TABLE cs_open (
  conv_id   bytea  NOT NULL,
  message   bigint NOT NULL,
  holder    bytea  NOT NULL,
  part      bigint NOT NULL,
  first_seq bigint NOT NULL,
  last_seq  bigint NOT NULL,
  -- When it was closed: the row stays for a while, for a part that is sent twice.
  done      timestamptz,
  PRIMARY KEY (conv_id, message)
);
CREATE INDEX cs_open_holder ON cs_open (holder);
