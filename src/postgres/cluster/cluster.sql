-- What a database has that is one cluster of a sharded store, beside its tables. Nothing here is in a database that holds a
-- store by itself. All of it may be run again.

-- First what writers lock first: nobody waits for one who waits for him.
LOCK TABLE cs_conversation IN SHARE ROW EXCLUSIVE MODE;

-- Which store this is, and which of its clusters.
CREATE TABLE IF NOT EXISTS cs_shards (
  one      boolean PRIMARY KEY DEFAULT true CHECK (one),
  version  integer NOT NULL,
  -- The oldest version whose programs may still use it.
  oldest   integer NOT NULL,
  store_id bytea   NOT NULL,
  cluster  bigint  NOT NULL,
  clusters bigint  NOT NULL,
  -- Grows with each bucket that comes or goes.
  moves    bigint  NOT NULL
);

-- The buckets that are here, that come, and that went. The others have never been here.
CREATE TABLE IF NOT EXISTS cs_bucket (
  bucket bigint PRIMARY KEY,
  -- here: read and written; leaving: read; gone: to the peer.
  state  text   NOT NULL CHECK (state IN ('here', 'leaving', 'gone', 'arriving', 'arrived')),
  -- The other cluster of a move.
  peer   bigint,
  -- Who moves it: one at a time.
  mover  bytea
);

-- Forks that are here with what they were forked from, and not in the bucket of their own ids; and those that are about to be
-- made, with what makes them.
CREATE TABLE IF NOT EXISTS cs_family (
  conv_id bytea  PRIMARY KEY,
  bucket  bigint NOT NULL,
  token   bigint NOT NULL
);
CREATE INDEX IF NOT EXISTS cs_family_bucket ON cs_family (bucket, conv_id);

-- Of the ids whose own buckets are here: the forks that are in another bucket.
CREATE TABLE IF NOT EXISTS cs_placed (
  conv_id bytea  PRIMARY KEY,
  bucket  bigint NOT NULL,
  token   bigint NOT NULL
);

-- Conversations that are being copied: the row of each, as it was, as text. What belongs to it is in its tables already.
CREATE TABLE IF NOT EXISTS cs_arriving (
  conv_id     bytea   PRIMARY KEY,
  bucket      bigint  NOT NULL,
  incarnation bigint  NOT NULL,
  commit_no   bigint  NOT NULL,
  redactions  bigint  NOT NULL,
  next_seq    bigint  NOT NULL,
  deleted     boolean NOT NULL,
  head        bytea   NOT NULL
);
CREATE INDEX IF NOT EXISTS cs_arriving_bucket ON cs_arriving (bucket, conv_id);

-- Conversations whose rows went to another cluster: what else of them is here is to be erased.
CREATE TABLE IF NOT EXISTS cs_left (
  conv_id bytea  PRIMARY KEY,
  bucket  bigint NOT NULL
);
CREATE INDEX IF NOT EXISTS cs_left_bucket ON cs_left (bucket);

-- The bucket of an id: ten bits, from all of its bytes.
CREATE OR REPLACE FUNCTION cs_bucket_of_v1(p_conv bytea) RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT (((get_byte(p_conv, 0) # get_byte(p_conv, 2) # get_byte(p_conv, 4) # get_byte(p_conv, 6)
      # get_byte(p_conv, 8) # get_byte(p_conv, 10) # get_byte(p_conv, 12) # get_byte(p_conv, 14)) & 3) << 8
    | (get_byte(p_conv, 1) # get_byte(p_conv, 3) # get_byte(p_conv, 5) # get_byte(p_conv, 7)
      # get_byte(p_conv, 9) # get_byte(p_conv, 11) # get_byte(p_conv, 13) # get_byte(p_conv, 15)))::bigint
$$;

CREATE INDEX IF NOT EXISTS cs_conversation_bucket ON cs_conversation (cs_bucket_of_v1(conv_id), conv_id);
CREATE INDEX IF NOT EXISTS cs_placed_bucket ON cs_placed (cs_bucket_of_v1(conv_id), conv_id);

-- The bucket of a conversation that is here: a fork has that of its parent.
CREATE OR REPLACE FUNCTION cs_place_of_v1(p_conv bytea) RETURNS bigint LANGUAGE sql STABLE AS $$
  SELECT coalesce((SELECT f.bucket FROM cs_family f WHERE f.conv_id = p_conv), cs_bucket_of_v1(p_conv))
$$;

-- Keeps a bucket here until the transaction ends, or fails.
CREATE OR REPLACE FUNCTION cs_enter_v1(p_bucket bigint) RETURNS void LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  PERFORM pg_advisory_xact_lock_shared(716338495, p_bucket::integer);
  IF NOT EXISTS (SELECT FROM cs_bucket b WHERE b.bucket = p_bucket AND b.state = 'here') THEN
    RAISE EXCEPTION 'bucket % is in another cluster, or on its way there', p_bucket USING ERRCODE = 'CSB01';
  END IF;
END $$;

-- Who decides what becomes of a name decides alone.
CREATE OR REPLACE FUNCTION cs_decide_v1(p_conv bytea) RETURNS void LANGUAGE sql VOLATILE AS $$
  SELECT pg_advisory_xact_lock(716338496, ('x' || encode(substr(p_conv, 13, 4), 'hex'))::bit(32)::integer)
$$;

-- Erases what belongs to conversations, but for their rows.
CREATE OR REPLACE FUNCTION cs_erase_v1(p_convs bytea[]) RETURNS void LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  DELETE FROM cs_open o WHERE o.conv_id = ANY (p_convs);
  DELETE FROM cs_key k WHERE k.conv_id = ANY (p_convs);
  DELETE FROM cs_item i WHERE i.conv_id = ANY (p_convs);
  DELETE FROM cs_record r WHERE r.conv_id = ANY (p_convs);
END $$;

-- Each write changes the row of its conversation: this is where a write of a bucket that is not here ends.
CREATE OR REPLACE FUNCTION cs_check_bucket_v1() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  r cs_conversation%ROWTYPE;
  own bigint;
  place bigint;
BEGIN
  IF TG_OP = 'DELETE' THEN r := OLD; ELSE r := NEW; END IF;
  IF current_setting('conversation_store.moving', true) = 'on' THEN RETURN r; END IF;
  own := cs_bucket_of_v1(r.conv_id);
  IF r.parent_id IS NULL THEN place := own;
  ELSIF TG_OP = 'INSERT' THEN place := cs_place_of_v1(r.parent_id);
  ELSE place := cs_place_of_v1(r.conv_id);
  END IF;
  PERFORM cs_enter_v1(place);
  IF TG_OP = 'INSERT' THEN
    IF place = own THEN
      PERFORM cs_decide_v1(r.conv_id);
      IF EXISTS (SELECT FROM cs_placed p WHERE p.conv_id = r.conv_id) THEN
        RAISE EXCEPTION 'this name is that of a fork in another bucket' USING ERRCODE = 'CSB02';
      END IF;
      -- Of a fork that was cut off.
      DELETE FROM cs_family f WHERE f.conv_id = r.conv_id;
    ELSIF NOT EXISTS (SELECT FROM cs_family f WHERE f.conv_id = r.conv_id AND f.bucket = place) THEN
      RAISE EXCEPTION 'a fork is announced before it is made in another bucket' USING ERRCODE = 'CSB03';
    END IF;
    -- What an earlier one of this id left here, as its bucket went, or was being copied.
    -- In this order: a move that is given up makes of the second the first.
    DELETE FROM cs_arriving a WHERE a.conv_id = r.conv_id;
    IF FOUND THEN PERFORM cs_erase_v1(ARRAY[r.conv_id]); END IF;
    DELETE FROM cs_left l WHERE l.conv_id = r.conv_id;
    IF FOUND THEN PERFORM cs_erase_v1(ARRAY[r.conv_id]); END IF;
  ELSIF TG_OP = 'DELETE' THEN
    DELETE FROM cs_family f WHERE f.conv_id = r.conv_id;
  END IF;
  RETURN r;
END $$;

CREATE OR REPLACE TRIGGER cs_check_bucket BEFORE INSERT OR UPDATE OR DELETE ON cs_conversation
  FOR EACH ROW EXECUTE FUNCTION cs_check_bucket_v1();

-- Whether a name is taken here. Outcomes are those of the other functions: 2 it is, 4 its name waits for forks.
CREATE OR REPLACE FUNCTION cs_taken_v1(p_conv bytea, OUT o_outcome integer, OUT o_last bigint) LANGUAGE sql STABLE AS $$
  SELECT CASE WHEN t.deleted THEN 4 ELSE 2 END, t.next_seq - 1 FROM cs_conversation t WHERE t.conv_id = p_conv
$$;

-- A fork in another bucket than that of its id takes four steps: it is announced where it will be; the place of its id says
-- where that is; it is made, if it is still announced; and it is found. What ends between two steps leaves what the next one
-- of that name takes away.
CREATE OR REPLACE FUNCTION cs_announce_v1(p_conv bytea, p_bucket bigint, p_token bigint,
  OUT o_outcome integer, OUT o_last bigint
) LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  PERFORM cs_enter_v1(p_bucket);
  -- No bucket becomes one that has arrived until this is done; and what has arrived is looked for before what is here.
  PERFORM pg_advisory_xact_lock_shared(716338497, 0);
  PERFORM cs_decide_v1(p_conv);
  IF EXISTS (
    SELECT FROM cs_arriving a JOIN cs_bucket b ON b.bucket = a.bucket AND b.state = 'arrived' WHERE a.conv_id = p_conv
  ) THEN
    RAISE EXCEPTION 'a conversation of this name is on its way here' USING ERRCODE = 'CSB01';
  END IF;
  SELECT t.o_outcome, t.o_last INTO o_outcome, o_last FROM cs_taken_v1(p_conv) t;
  IF o_outcome IS NOT NULL THEN RETURN; END IF;
  INSERT INTO cs_family VALUES (p_conv, p_bucket, p_token)
    ON CONFLICT (conv_id) DO UPDATE SET bucket = p_bucket, token = p_token;
  o_outcome := 0;
END $$;

-- p_replaced: the token of what was found there before, and is no more. Another one: outcome 8, and what it is.
CREATE OR REPLACE FUNCTION cs_place_v1(p_conv bytea, p_bucket bigint, p_token bigint, p_replaced bigint,
  OUT o_outcome integer, OUT o_last bigint, OUT o_bucket bigint, OUT o_token bigint
) LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  PERFORM cs_enter_v1(cs_bucket_of_v1(p_conv));
  PERFORM cs_decide_v1(p_conv);
  SELECT t.o_outcome, t.o_last INTO o_outcome, o_last FROM cs_taken_v1(p_conv) t;
  IF o_outcome IS NOT NULL THEN RETURN; END IF;
  SELECT p.bucket, p.token INTO o_bucket, o_token FROM cs_placed p WHERE p.conv_id = p_conv;
  IF FOUND AND o_token IS DISTINCT FROM p_replaced THEN o_outcome := 8; RETURN; END IF;
  INSERT INTO cs_placed VALUES (p_conv, p_bucket, p_token)
    ON CONFLICT (conv_id) DO UPDATE SET bucket = p_bucket, token = p_token;
  o_outcome := 0;
END $$;

-- Outcome 9: it is not announced any more.
CREATE OR REPLACE FUNCTION cs_fork_placed_v1(
  p_token bigint, p_named bytea, p_named_incarnation bigint, p_chain bytea[], p_redactions bigint,
  p_conv bytea, p_owner bytea, p_key bytea, p_now bigint, p_random bigint,
  p_parent bytea, p_parent_seq bigint, p_parent_incarnation bigint, p_parent_commit bigint,
  p_next_message bigint, p_last_hide bigint, p_last_meta bigint,
  p_title bytea, p_title_kind smallint, p_title_message bigint, p_tags bytea[],
  OUT o_outcome integer, OUT o_last bigint
) LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  -- First the rows, then the name, as a fork that is not placed.
  PERFORM FROM cs_conversation t WHERE t.conv_id = ANY (p_chain) ORDER BY t.conv_id FOR SHARE;
  PERFORM cs_decide_v1(p_conv);
  IF NOT EXISTS (SELECT FROM cs_family f WHERE f.conv_id = p_conv AND f.token = p_token) THEN
    o_outcome := 9;
    RETURN;
  END IF;
  SELECT f.o_outcome, f.o_last INTO o_outcome, o_last FROM cs_fork_v1(
    p_named, p_named_incarnation, p_chain, p_redactions, p_conv, p_owner, p_key, p_now, p_random, p_parent, p_parent_seq,
    p_parent_incarnation, p_parent_commit, p_next_message, p_last_hide, p_last_meta, p_title, p_title_kind, p_title_message,
    p_tags) f;
END $$;

-- Takes back what announced a fork that was not made, but for one: nothing of that name comes here any more.
CREATE OR REPLACE FUNCTION cs_retract_v1(p_conv bytea, p_bucket bigint, p_kept bigint,
  OUT o_outcome integer, OUT o_last bigint
) LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  PERFORM cs_enter_v1(p_bucket);
  PERFORM cs_decide_v1(p_conv);
  SELECT t.o_outcome, t.o_last INTO o_outcome, o_last FROM cs_taken_v1(p_conv) t;
  IF o_outcome IS NOT NULL THEN RETURN; END IF;
  DELETE FROM cs_family f WHERE f.conv_id = p_conv AND f.token IS DISTINCT FROM p_kept;
  o_outcome := 0;
END $$;

CREATE OR REPLACE FUNCTION cs_unplace_v1(p_conv bytea, p_token bigint, OUT o_outcome integer) LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  PERFORM cs_enter_v1(cs_bucket_of_v1(p_conv));
  PERFORM cs_decide_v1(p_conv);
  DELETE FROM cs_placed p WHERE p.conv_id = p_conv AND p.token = p_token;
  o_outcome := 0;
END $$;

-- Gives the forks of a store that was one database the buckets of what they were forked from.
CREATE OR REPLACE FUNCTION cs_place_forks_v1() RETURNS void LANGUAGE sql VOLATILE AS $$
  WITH RECURSIVE family AS (
    SELECT t.conv_id, t.incarnation, cs_bucket_of_v1(t.conv_id) AS bucket FROM cs_conversation t
    WHERE NOT EXISTS (
      SELECT FROM cs_conversation p WHERE p.conv_id = t.parent_id AND p.incarnation = t.parent_incarnation)
    UNION ALL
    SELECT t.conv_id, t.incarnation, f.bucket FROM family f
      JOIN cs_conversation t ON t.parent_id = f.conv_id AND t.parent_incarnation = f.incarnation
  ), forks AS (
    INSERT INTO cs_family SELECT f.conv_id, f.bucket, 0 FROM family f WHERE f.bucket <> cs_bucket_of_v1(f.conv_id)
    ON CONFLICT DO NOTHING RETURNING conv_id, bucket
  )
  INSERT INTO cs_placed SELECT f.conv_id, f.bucket, 0 FROM forks f ON CONFLICT DO NOTHING
$$;

-- The conversations of a bucket that is here, in the order of their ids.
CREATE OR REPLACE FUNCTION cs_in_bucket_v1(p_bucket bigint, p_after bytea, p_limit bigint)
RETURNS SETOF cs_conversation LANGUAGE sql STABLE AS $$
  SELECT t.* FROM (
    (SELECT o.conv_id FROM cs_conversation o
      WHERE cs_bucket_of_v1(o.conv_id) = p_bucket AND o.conv_id > p_after
        AND NOT EXISTS (SELECT FROM cs_family f WHERE f.conv_id = o.conv_id)
      ORDER BY o.conv_id LIMIT p_limit)
    UNION ALL
    (SELECT f.conv_id FROM cs_family f JOIN cs_conversation o ON o.conv_id = f.conv_id
      WHERE f.bucket = p_bucket AND f.conv_id > p_after
      ORDER BY f.conv_id LIMIT p_limit)
  ) ids JOIN cs_conversation t ON t.conv_id = ids.conv_id
  ORDER BY t.conv_id LIMIT p_limit
$$;

-- How many conversations of a bucket have messages that are being written.
CREATE OR REPLACE FUNCTION cs_written_in_v1(p_bucket bigint) RETURNS bigint LANGUAGE sql VOLATILE AS $$
  SELECT count(*) FROM cs_conversation t
  WHERE NOT t.deleted AND (cardinality(t.open_messages) > 0 OR cardinality(t.interrupted) > 0)
    AND cardinality(t.open_messages) > 0 AND cs_place_of_v1(t.conv_id) = p_bucket
$$;

-- The steps of a move. Each may be repeated, and says so where another one comes first.
CREATE OR REPLACE FUNCTION cs_arrive_v1(p_bucket bigint, p_peer bigint, p_mover bytea) RETURNS text LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  b cs_bucket%ROWTYPE;
BEGIN
  INSERT INTO cs_bucket VALUES (p_bucket, 'arriving', p_peer, p_mover) ON CONFLICT (bucket) DO NOTHING;
  SELECT * INTO b FROM cs_bucket t WHERE t.bucket = p_bucket FOR UPDATE;
  IF b.state IN ('arriving', 'arrived') AND b.peer <> p_peer OR b.state IN ('here', 'leaving') THEN
    RAISE EXCEPTION 'bucket % is % here', p_bucket, b.state USING ERRCODE = 'CSB04';
  END IF;
  IF b.state = 'gone' THEN b.state := 'arriving'; END IF;
  UPDATE cs_bucket t SET state = b.state, peer = p_peer, mover = p_mover WHERE t.bucket = p_bucket;
  RETURN b.state;
END $$;

-- Gives up an arrival from a cluster that the bucket has left for another one.
CREATE OR REPLACE FUNCTION cs_give_up_v1(p_bucket bigint, p_from bigint, p_now bigint) RETURNS void LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  UPDATE cs_bucket t SET state = 'gone', peer = p_now, mover = NULL
    WHERE t.bucket = p_bucket AND t.state = 'arriving' AND t.peer = p_from;
  IF NOT FOUND THEN RETURN; END IF;
  WITH given_up AS (DELETE FROM cs_arriving a WHERE a.bucket = p_bucket RETURNING a.conv_id)
    INSERT INTO cs_left SELECT g.conv_id, p_bucket FROM given_up g ON CONFLICT (conv_id) DO UPDATE SET bucket = p_bucket;
END $$;

-- Fails if another program moves the bucket by now.
CREATE OR REPLACE FUNCTION cs_own_move_v1(p_bucket bigint, p_mover bytea) RETURNS void LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  PERFORM FROM cs_bucket t WHERE t.bucket = p_bucket AND t.mover = p_mover AND t.state = 'arriving' FOR UPDATE;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'another program moves bucket %', p_bucket USING ERRCODE = 'CSB04';
  END IF;
END $$;

-- Ends writing in a bucket, unless messages are being written in it: gives how many.
CREATE OR REPLACE FUNCTION cs_freeze_v1(p_bucket bigint, p_peer bigint) RETURNS bigint LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  writing bigint;
BEGIN
  PERFORM FROM cs_bucket t WHERE t.bucket = p_bucket AND t.state = 'leaving' AND t.peer = p_peer;
  IF FOUND THEN RETURN 0; END IF;
  writing := cs_written_in_v1(p_bucket);
  IF writing > 0 THEN RETURN writing; END IF;
  PERFORM set_config('lock_timeout', '2000', true);
  PERFORM pg_advisory_xact_lock(716338495, p_bucket::integer);
  writing := cs_written_in_v1(p_bucket);
  IF writing > 0 THEN RETURN writing; END IF;
  UPDATE cs_bucket t SET state = 'leaving', peer = p_peer WHERE t.bucket = p_bucket AND t.state = 'here';
  IF NOT FOUND THEN
    RAISE EXCEPTION 'bucket % is not here any more', p_bucket USING ERRCODE = 'CSB04';
  END IF;
  RETURN 0;
END $$;

-- The bucket is here no more. The rows of its conversations go at once, so that nobody reads what is old.
CREATE OR REPLACE FUNCTION cs_leave_v1(p_bucket bigint, p_peer bigint) RETURNS void LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  found_state text;
  ids bytea[];
BEGIN
  SELECT t.state INTO found_state FROM cs_bucket t WHERE t.bucket = p_bucket AND t.peer = p_peer FOR UPDATE;
  IF found_state = 'gone' THEN RETURN; END IF;
  IF found_state IS DISTINCT FROM 'leaving' THEN
    RAISE EXCEPTION 'bucket % is not leaving', p_bucket USING ERRCODE = 'CSB04';
  END IF;
  PERFORM set_config('conversation_store.moving', 'on', true);
  ids := ARRAY(SELECT c.conv_id FROM cs_in_bucket_v1(p_bucket, '', 9223372036854775807) c);
  INSERT INTO cs_left SELECT u.id, p_bucket FROM unnest(ids) AS u(id) ON CONFLICT (conv_id) DO UPDATE SET bucket = p_bucket;
  -- In the order in which writers lock them, who are refused then.
  PERFORM FROM cs_conversation t WHERE t.conv_id = ANY (ids) ORDER BY t.conv_id FOR UPDATE;
  DELETE FROM cs_conversation t WHERE t.conv_id = ANY (ids);
  DELETE FROM cs_family f WHERE f.bucket = p_bucket;
  DELETE FROM cs_placed p WHERE cs_bucket_of_v1(p.conv_id) = p_bucket;
  UPDATE cs_bucket t SET state = 'gone', mover = NULL WHERE t.bucket = p_bucket;
  UPDATE cs_shards SET moves = moves + 1;
  PERFORM set_config('conversation_store.moving', '', true);
END $$;

-- The bucket is here from now on.
CREATE OR REPLACE FUNCTION cs_take_v1(p_bucket bigint) RETURNS void LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  found_state text;
BEGIN
  SELECT t.state INTO found_state FROM cs_bucket t WHERE t.bucket = p_bucket FOR UPDATE;
  IF found_state = 'here' THEN RETURN; END IF;
  IF found_state IS DISTINCT FROM 'arrived' THEN
    RAISE EXCEPTION 'bucket % has not arrived', p_bucket USING ERRCODE = 'CSB04';
  END IF;
  PERFORM set_config('conversation_store.moving', 'on', true);
  INSERT INTO cs_conversation SELECT (x.head).* FROM (
    SELECT convert_from(a.head, 'UTF8')::cs_conversation AS head FROM cs_arriving a WHERE a.bucket = p_bucket OFFSET 0
  ) x;
  DELETE FROM cs_arriving a WHERE a.bucket = p_bucket;
  UPDATE cs_bucket t SET state = 'here', peer = NULL, mover = NULL WHERE t.bucket = p_bucket;
  UPDATE cs_shards SET moves = moves + 1;
  PERFORM set_config('conversation_store.moving', '', true);
END $$;

-- Erases some of what a bucket left: gives how many conversations.
CREATE OR REPLACE FUNCTION cs_clear_v1(p_bucket bigint, p_limit bigint) RETURNS bigint LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  ids bytea[];
BEGIN
  WITH erased AS (
    DELETE FROM cs_left l WHERE l.conv_id IN (
      SELECT i.conv_id FROM cs_left i WHERE i.bucket = p_bucket LIMIT p_limit FOR UPDATE SKIP LOCKED)
    RETURNING l.conv_id
  ) SELECT array_agg(e.conv_id) INTO ids FROM erased e;
  PERFORM cs_erase_v1(ids);
  RETURN coalesce(cardinality(ids), 0);
END $$;
