-- What programs call. Each that writes changes the row of each conversation that it writes, and with it its commit_no. Each locks
-- the head before it answers from what it looked up, and its commit writes WAL: so an answer waits for the standbys, also the
-- answer that a key was used before.
--
-- One order of locks: a call that changes or keeps several rows of cs_conversation locks all of them first, in the order of
-- their ids, and then locks no other row of it. So two calls never wait for each other. The one that passes over rows that
-- somebody has locked waits for none.
--
-- Outcomes: 0 done, 1 the key was used before, 2 not as expected, 3 another owner's, 4 its name waits for forks, 5 the
-- message is closed, 6 the holder's lease has run out, 7 the message's lease has run out, 8 it has changed meanwhile,
-- 9 somebody writes the message, 10 there is no such conversation.

-- Notes which functions are here, by their checksum.
CREATE OR REPLACE FUNCTION cs_describe_v1(p_checksum bigint) RETURNS void LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  EXECUTE format('COMMENT ON TABLE cs_schema IS %L', 'functions ' || p_checksum);
END $$;

CREATE OR REPLACE FUNCTION cs_refuse_isolation_v1() RETURNS bigint LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  RAISE EXCEPTION 'a write needs a transaction that is READ COMMITTED, and this one is %: `ALTER ROLE ... SET '
    'default_transaction_isolation = ''read committed''` mends it', upper(current_setting('transaction_isolation'))
    USING ERRCODE = 'invalid_transaction_state';
END $$;

-- The number of a commit. Each write takes one. What it locks before that, it has to see as it is then: only READ COMMITTED does.
CREATE OR REPLACE FUNCTION cs_commit_v1(p_last bigint) RETURNS bigint LANGUAGE sql VOLATILE AS $$
  SELECT CASE WHEN current_setting('transaction_isolation') = 'read committed'
    THEN greatest(p_last + 1, (extract(epoch FROM clock_timestamp()) * 1000)::bigint)
    ELSE cs_refuse_isolation_v1() END
$$;

CREATE OR REPLACE FUNCTION cs_minute_v1(p_micros bigint) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$
  SELECT greatest(p_micros, 0) / 60000000
$$;

CREATE OR REPLACE FUNCTION cs_is_held_v1(p_holder bytea) RETURNS boolean LANGUAGE sql VOLATILE AS $$
  SELECT EXISTS (SELECT FROM cs_holder h WHERE h.holder = p_holder AND h.until > clock_timestamp())
$$;

-- How often something was redacted that a conversation reads.
CREATE OR REPLACE FUNCTION cs_redactions_v1(p_conv bytea) RETURNS bigint LANGUAGE sql STABLE AS $$
  WITH RECURSIVE line AS (
    SELECT c.parent_id, c.parent_incarnation, c.parent_seq, c.redactions FROM cs_conversation c WHERE c.conv_id = p_conv
    UNION ALL
    SELECT c.parent_id, c.parent_incarnation, c.parent_seq, c.redactions
    FROM line l JOIN cs_conversation c ON c.conv_id = l.parent_id AND c.incarnation = l.parent_incarnation
    WHERE l.parent_seq > 0
  )
  SELECT coalesce(sum(redactions), 0)::bigint FROM line
$$;

-- A conversation, and all that it was forked from.
CREATE OR REPLACE FUNCTION cs_line_v1(p_conv bytea) RETURNS bytea[] LANGUAGE sql STABLE AS $$
  WITH RECURSIVE line AS (
    SELECT c.conv_id, c.parent_id, c.parent_incarnation, c.parent_seq FROM cs_conversation c WHERE c.conv_id = p_conv
    UNION ALL
    SELECT c.conv_id, c.parent_id, c.parent_incarnation, c.parent_seq
    FROM line l JOIN cs_conversation c ON c.conv_id = l.parent_id AND c.incarnation = l.parent_incarnation
    WHERE l.parent_seq > 0
  )
  SELECT coalesce(array_agg(l.conv_id), '{}') FROM line l
$$;

-- The conversations whose titles were made of a message: of those that have it, from a seq on, and of their forks.
CREATE OR REPLACE FUNCTION cs_titled_v1(p_having bytea[], p_message bigint, p_from bigint)
RETURNS bytea[] LANGUAGE sql STABLE AS $$
  WITH RECURSIVE family AS (
    SELECT t.conv_id, t.incarnation FROM cs_conversation t WHERE t.conv_id = ANY (p_having)
    UNION
    SELECT t.conv_id, t.incarnation FROM family f
      JOIN cs_conversation t ON t.parent_id = f.conv_id AND t.parent_incarnation = f.incarnation
      WHERE t.parent_seq >= p_from
  )
  SELECT coalesce(array_agg(t.conv_id), '{}') FROM family f JOIN cs_conversation t ON t.conv_id = f.conv_id
    WHERE t.title_kind = 1 AND t.title_message = p_message
$$;

-- Appends a record: messages, the beginning of one (p_holder), or what a conversation is made with (p_meta).
-- p_expected: a last seq, -1 anything, -2 no such conversation.
CREATE OR REPLACE FUNCTION cs_append_v1(
  p_conv bytea, p_owner bytea, p_key bytea, p_now bigint, p_random bigint,
  p_body bytea, p_entries bigint, p_messages bigint,
  p_title bytea, p_title_kind smallint, p_title_at bigint, p_tags bytea[], p_meta boolean,
  p_expected bigint, p_idem bytea, p_content bytea, p_items bytea[], p_item_at bigint[], p_holder bytea,
  OUT o_outcome integer, OUT o_first bigint, OUT o_last bigint, OUT o_message bigint, OUT o_messages bigint,
  OUT o_content bytea, OUT o_incarnation bigint
) LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  h cs_conversation%ROWTYPE;
  c bigint;
  is_new boolean := false;
  is_used boolean := false;
  at_commit bigint;
  at_minute bigint;
  had_title boolean;
  had_interrupted boolean;
BEGIN
  IF p_holder IS NOT NULL AND NOT cs_is_held_v1(p_holder) THEN o_outcome := 6; RETURN; END IF;
  -- The usual append: one change of the row locks it, checks, and moves the head. Where it does not fit, what follows finds out
  -- why. A key that somebody else uses at the same moment undoes all of it: the caller tries again, and finds the key.
  IF p_expected <> -2 AND p_holder IS NULL AND NOT p_meta THEN
    IF p_idem IS NOT NULL THEN
      PERFORM FROM cs_key k WHERE k.conv_id = p_conv AND k.digest = p_idem;
      is_used := FOUND;
    END IF;
    IF NOT is_used THEN
      at_commit := cs_commit_v1(0);
      at_minute := cs_minute_v1(p_now);
      UPDATE cs_conversation t SET
        commit_no = greatest(t.commit_no + 1, at_commit), next_seq = t.next_seq + p_entries,
        next_message = t.next_message + p_messages, last_activity = greatest(t.last_activity, p_now),
        minute = greatest(t.minute, at_minute)
      WHERE t.conv_id = p_conv AND NOT t.deleted AND (p_owner IS NULL OR t.owner = p_owner)
        AND (p_expected = -1 OR t.next_seq - 1 = p_expected)
      RETURNING t.next_seq - p_entries, t.next_message - p_messages, t.incarnation, t.commit_no, t.title_kind <> 0,
        t.interrupted <> '{}' INTO o_first, o_message, o_incarnation, c, had_title, had_interrupted;
      IF FOUND THEN
        o_outcome := 0;
        o_last := o_first + p_entries - 1;
        o_messages := p_messages;
        INSERT INTO cs_record VALUES (
          p_conv, o_first, o_incarnation, c, p_now, o_message, o_message + p_messages, p_entries, false, p_body);
        IF NOT had_title AND p_title IS NOT NULL THEN
          UPDATE cs_conversation t SET title = p_title, title_kind = p_title_kind,
            title_message = CASE WHEN p_title_kind = 1 THEN o_message + p_title_at ELSE t.title_message END
          WHERE t.conv_id = p_conv;
        END IF;
        IF had_interrupted AND p_messages > 0 THEN
          UPDATE cs_conversation t SET interrupted = '{}' WHERE t.conv_id = p_conv;
        END IF;
        IF cardinality(p_items) > 0 THEN
          INSERT INTO cs_item SELECT p_conv, u.digest, o_first + u.at FROM unnest(p_items, p_item_at) AS u(digest, at)
            ON CONFLICT DO NOTHING;
        END IF;
        IF p_idem IS NOT NULL THEN
          INSERT INTO cs_key VALUES (p_conv, p_idem, o_first, o_last, o_message, p_messages, p_content)
            ON CONFLICT DO NOTHING;
          IF NOT FOUND THEN
            RAISE EXCEPTION 'the key is used at the same moment' USING ERRCODE = 'serialization_failure';
          END IF;
        END IF;
        RETURN;
      END IF;
    END IF;
  END IF;
  LOOP
    SELECT * INTO h FROM cs_conversation t WHERE t.conv_id = p_conv FOR UPDATE;
    EXIT WHEN FOUND;
    IF p_expected > 0 THEN o_outcome := 2; o_last := 0; RETURN; END IF;
    c := cs_commit_v1(0);
    INSERT INTO cs_conversation VALUES (
      p_conv, ((c - 1) << 20) | p_random, c - 1, 1, 0, 0, 0, p_now, p_now, cs_minute_v1(p_now), coalesce(p_owner, ''), p_key,
      NULL, NULL, NULL, NULL, 0, 0, 0, 0, NULL, 0, 0, '{}', '{}', '{}', 0, false
    ) ON CONFLICT (conv_id) DO NOTHING;
    is_new := FOUND;
  END LOOP;
  IF NOT h.deleted AND p_owner IS NOT NULL AND h.owner <> p_owner THEN o_outcome := 3; RETURN; END IF;
  IF p_idem IS NOT NULL THEN
    SELECT k.first_seq, k.last_seq, k.first_message, k.messages, k.content
      INTO o_first, o_last, o_message, o_messages, o_content
      FROM cs_key k WHERE k.conv_id = p_conv AND k.digest = p_idem;
    IF FOUND THEN o_outcome := 1; RETURN; END IF;
  END IF;
  IF h.deleted THEN o_outcome := 4; RETURN; END IF;
  IF (p_expected = -2 AND NOT is_new) OR (p_expected >= 0 AND h.next_seq - 1 <> p_expected) THEN
    o_outcome := 2;
    o_last := h.next_seq - 1;
    RETURN;
  END IF;
  c := cs_commit_v1(h.commit_no);
  o_outcome := 0;
  o_first := h.next_seq;
  o_last := h.next_seq + p_entries - 1;
  o_message := h.next_message;
  o_messages := p_messages;
  o_incarnation := h.incarnation;
  INSERT INTO cs_record VALUES (
    p_conv, o_first, h.incarnation, c, p_now, h.next_message, h.next_message + p_messages, p_entries, false, p_body);
  IF cardinality(p_items) > 0 THEN
    INSERT INTO cs_item SELECT p_conv, u.digest, o_first + u.at FROM unnest(p_items, p_item_at) AS u(digest, at)
      ON CONFLICT DO NOTHING;
  END IF;
  IF p_idem IS NOT NULL THEN
    INSERT INTO cs_key VALUES (p_conv, p_idem, o_first, o_last, o_message, p_messages, p_content);
  END IF;
  IF p_holder IS NOT NULL THEN
    INSERT INTO cs_open VALUES (p_conv, o_message, p_holder, 0, o_first, o_last, NULL);
  END IF;
  UPDATE cs_conversation t SET
    commit_no = c, next_seq = o_last + 1, next_message = h.next_message + p_messages,
    last_activity = greatest(h.last_activity, p_now), minute = cs_minute_v1(greatest(h.last_activity, p_now)),
    title = CASE WHEN h.title_kind = 0 AND p_title IS NOT NULL THEN p_title ELSE h.title END,
    title_kind = CASE WHEN h.title_kind = 0 AND p_title IS NOT NULL THEN p_title_kind ELSE h.title_kind END,
    title_message = CASE WHEN h.title_kind = 0 AND p_title IS NOT NULL AND p_title_kind = 1
      THEN h.next_message + p_title_at ELSE h.title_message END,
    tags = coalesce(p_tags, h.tags), last_meta = CASE WHEN p_meta THEN o_first ELSE h.last_meta END,
    open_messages = CASE WHEN p_holder IS NULL THEN h.open_messages ELSE h.open_messages || h.next_message END,
    interrupted = CASE WHEN p_messages > 0 THEN '{}' ELSE h.interrupted END
  WHERE t.conv_id = p_conv;
END $$;

-- Appends records, each to its conversation as cs_append_v1 does, and in the order of the arrays. Gives a row for each that it
-- wrote, with its place, from 1. Where something is in the way, it writes nothing and gives no row, and cs_append_v1 finds out
-- why: somebody has locked the conversation, it is not there or not as expected, it gets a title, the key was used. So nothing
-- here waits for a lock of a row, and no record keeps another one waiting.
-- p_was: the incarnation that it has to be, -1 any. p_item_of: the place of the record that an item is in.
CREATE OR REPLACE FUNCTION cs_append_many_v1(
  p_conv bytea[], p_owner bytea[], p_now bigint[], p_body bytea[], p_entries bigint[], p_messages bigint[],
  p_titled boolean[], p_expected bigint[], p_was bigint[], p_idem bytea[], p_content bytea[],
  p_items bytea[], p_item_of bigint[], p_item_at bigint[]
) RETURNS TABLE (
  o_at bigint, o_outcome integer, o_first bigint, o_last bigint, o_message bigint, o_messages bigint, o_content bytea,
  o_incarnation bigint
) LANGUAGE plpgsql VOLATILE SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  at_commit bigint := cs_commit_v1(0);
  locked bytea[];
  r record;
  c bigint;
BEGIN
  locked := ARRAY(SELECT t.conv_id FROM cs_conversation t WHERE t.conv_id = ANY (p_conv) FOR UPDATE SKIP LOCKED);
  o_outcome := 0;
  FOR r IN
    SELECT u.* FROM unnest(p_conv, p_owner, p_now, p_body, p_entries, p_messages, p_titled, p_expected, p_was, p_idem, p_content)
      WITH ORDINALITY AS u(conv, owner, now, body, entries, messages, titled, expected, was, idem, content, place)
    WHERE u.conv = ANY (locked)
  LOOP
    IF r.idem IS NOT NULL THEN
      PERFORM FROM cs_key k WHERE k.conv_id = r.conv AND k.digest = r.idem;
      CONTINUE WHEN FOUND;
    END IF;
    UPDATE cs_conversation t SET
      commit_no = greatest(t.commit_no + 1, at_commit), next_seq = t.next_seq + r.entries,
      next_message = t.next_message + r.messages, last_activity = greatest(t.last_activity, r.now),
      minute = greatest(t.minute, cs_minute_v1(r.now))
    WHERE t.conv_id = r.conv AND NOT t.deleted AND (r.owner IS NULL OR t.owner = r.owner)
      AND (r.expected = -1 OR t.next_seq - 1 = r.expected) AND (r.was = -1 OR t.incarnation = r.was)
      AND (t.title_kind <> 0 OR NOT r.titled) AND t.interrupted = '{}'
    RETURNING t.next_seq - r.entries, t.next_message - r.messages, t.incarnation, t.commit_no
      INTO o_first, o_message, o_incarnation, c;
    CONTINUE WHEN NOT FOUND;
    o_at := r.place;
    o_last := o_first + r.entries - 1;
    o_messages := r.messages;
    INSERT INTO cs_record VALUES (
      r.conv, o_first, o_incarnation, c, r.now, o_message, o_message + r.messages, r.entries, false, r.body);
    IF r.place = ANY (p_item_of) THEN
      INSERT INTO cs_item SELECT r.conv, i.digest, o_first + i.at
        FROM unnest(p_items, p_item_of, p_item_at) AS i(digest, place, at) WHERE i.place = r.place
        ON CONFLICT DO NOTHING;
    END IF;
    IF r.idem IS NOT NULL THEN
      INSERT INTO cs_key VALUES (r.conv, r.idem, o_first, o_last, o_message, r.messages, r.content);
    END IF;
    RETURN NEXT;
  END LOOP;
END $$;

-- Appends a record that ends with an entry about the conversation as a whole, which was decided on what was seen: p_seen, the
-- row's last change, or none where there was no such conversation. p_is_expected: whether that is what the caller expects.
-- p_tags: all that it has then.
CREATE OR REPLACE FUNCTION cs_append_changing_v1(
  p_conv bytea, p_owner bytea, p_key bytea, p_now bigint, p_random bigint,
  p_body bytea, p_entries bigint, p_messages bigint,
  p_title bytea, p_title_kind smallint, p_title_at bigint, p_tags bytea[],
  p_idem bytea, p_content bytea, p_items bytea[], p_item_at bigint[], p_is_expected boolean, p_seen bigint,
  OUT o_outcome integer, OUT o_first bigint, OUT o_last bigint, OUT o_message bigint, OUT o_messages bigint,
  OUT o_content bytea, OUT o_incarnation bigint
) LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  h cs_conversation%ROWTYPE;
  is_there boolean;
BEGIN
  SELECT * INTO h FROM cs_conversation t WHERE t.conv_id = p_conv FOR UPDATE;
  is_there := FOUND;
  -- What is another owner's, what forks keep, and a key that was used: the append below answers them.
  IF NOT is_there OR NOT (h.deleted OR (p_owner IS NOT NULL AND h.owner <> p_owner) OR (p_idem IS NOT NULL AND EXISTS (
    SELECT FROM cs_key k WHERE k.conv_id = p_conv AND k.digest = p_idem
  ))) THEN
    IF h.commit_no IS DISTINCT FROM p_seen THEN o_outcome := 8; RETURN; END IF;
    IF NOT p_is_expected THEN
      o_outcome := 2;
      o_last := coalesce(h.next_seq - 1, 0);
      RETURN;
    END IF;
  END IF;
  SELECT * INTO o_outcome, o_first, o_last, o_message, o_messages, o_content, o_incarnation FROM cs_append_v1(
    p_conv, p_owner, p_key, p_now, p_random, p_body, p_entries, p_messages, p_title, p_title_kind, p_title_at, NULL, false,
    CASE WHEN is_there THEN -1 ELSE -2 END, p_idem, p_content, p_items, p_item_at, NULL);
  -- Somebody made it meanwhile.
  IF o_outcome = 2 THEN o_outcome := 8; END IF;
  IF o_outcome <> 0 THEN RETURN; END IF;
  UPDATE cs_conversation t SET last_meta = o_last, tags = p_tags,
    title = CASE WHEN p_title_kind = 2 THEN p_title ELSE t.title END,
    title_kind = CASE WHEN p_title_kind = 2 THEN 2 ELSE t.title_kind END,
    title_message = CASE WHEN p_title_kind = 2 THEN 0 ELSE t.title_message END
  WHERE t.conv_id = p_conv;
END $$;

-- Adds to a message that is open, and ends it: p_end 0 goes on, 1 finished, 2 interrupted. Without a holder: it is
-- interrupted if nobody holds it any more.
CREATE OR REPLACE FUNCTION cs_push_v1(
  p_conv bytea, p_incarnation bigint, p_message bigint, p_holder bytea, p_part bigint, p_now bigint,
  p_body bytea, p_entries bigint, p_items bytea[], p_item_at bigint[], p_end bigint,
  OUT o_outcome integer, OUT o_first bigint, OUT o_last bigint
) LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  h cs_conversation%ROWTYPE;
  w cs_open%ROWTYPE;
  c bigint;
BEGIN
  SELECT * INTO h FROM cs_conversation t WHERE t.conv_id = p_conv FOR UPDATE;
  IF NOT FOUND OR h.deleted OR h.incarnation <> p_incarnation THEN o_outcome := 10; RETURN; END IF;
  SELECT * INTO w FROM cs_open o WHERE o.conv_id = p_conv AND o.message = p_message;
  IF p_holder IS NULL THEN
    IF NOT p_message = ANY (h.open_messages) THEN o_outcome := 5; RETURN; END IF;
    IF w.holder IS NOT NULL AND cs_is_held_v1(w.holder) THEN o_outcome := 9; RETURN; END IF;
  ELSE
    IF w.holder IS NULL OR w.holder <> p_holder THEN o_outcome := 5; RETURN; END IF;
    -- It was sent twice: the first answer was lost, or this one comes late.
    IF w.part >= p_part THEN
      o_outcome := 0;
      o_first := w.first_seq;
      o_last := w.last_seq;
      RETURN;
    END IF;
    IF NOT p_message = ANY (h.open_messages) THEN o_outcome := 5; RETURN; END IF;
    IF NOT cs_is_held_v1(p_holder) THEN o_outcome := 7; RETURN; END IF;
  END IF;
  c := cs_commit_v1(h.commit_no);
  o_outcome := 0;
  o_first := h.next_seq;
  o_last := h.next_seq + p_entries - 1;
  INSERT INTO cs_record VALUES (
    p_conv, o_first, h.incarnation, c, p_now, p_message, h.next_message, p_entries, false, p_body);
  IF cardinality(p_items) > 0 THEN
    INSERT INTO cs_item SELECT p_conv, u.digest, o_first + u.at FROM unnest(p_items, p_item_at) AS u(digest, at)
      ON CONFLICT DO NOTHING;
  END IF;
  UPDATE cs_open o SET part = p_part, first_seq = o_first, last_seq = o_last,
    done = CASE WHEN p_end > 0 THEN clock_timestamp() END
  WHERE o.conv_id = p_conv AND o.message = p_message;
  UPDATE cs_conversation t SET
    commit_no = c, next_seq = o_last + 1, last_activity = greatest(h.last_activity, p_now),
    minute = cs_minute_v1(greatest(h.last_activity, p_now)),
    open_messages = CASE WHEN p_end > 0 THEN array_remove(h.open_messages, p_message) ELSE h.open_messages END,
    -- A later message may follow it already.
    interrupted = CASE WHEN p_end = 2 AND p_message + 1 = h.next_message THEN h.interrupted || p_message
      ELSE h.interrupted END
  WHERE t.conv_id = p_conv;
END $$;

-- Writes an entry about a conversation as a whole, if nothing has changed since it was decided on. p_chain: the conversations
-- that it reads, if its title was made of a text; p_redactions: as they were then.
CREATE OR REPLACE FUNCTION cs_control_v1(
  p_conv bytea, p_incarnation bigint, p_commit bigint, p_now bigint, p_body bytea,
  p_title bytea, p_title_kind smallint, p_title_message bigint, p_tags bytea[], p_last_hide bigint, p_last_meta bigint,
  p_open bigint[], p_interrupted bigint[], p_chain bytea[], p_redactions bigint,
  OUT o_outcome integer, OUT o_seq bigint
) LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  h cs_conversation%ROWTYPE;
  c bigint;
BEGIN
  PERFORM FROM cs_conversation t WHERE t.conv_id = ANY (p_chain || p_conv) ORDER BY t.conv_id FOR UPDATE;
  SELECT * INTO h FROM cs_conversation t WHERE t.conv_id = p_conv;
  IF NOT FOUND OR h.deleted THEN o_outcome := 10; RETURN; END IF;
  IF h.incarnation <> p_incarnation OR h.commit_no <> p_commit THEN o_outcome := 8; RETURN; END IF;
  IF cardinality(p_chain) > 0 AND cs_redactions_v1(p_conv) <> p_redactions THEN o_outcome := 8; RETURN; END IF;
  c := cs_commit_v1(h.commit_no);
  o_outcome := 0;
  o_seq := h.next_seq;
  INSERT INTO cs_record VALUES (
    p_conv, o_seq, h.incarnation, c, p_now, h.next_message, h.next_message, 1, false, p_body);
  DELETE FROM cs_open o WHERE o.conv_id = p_conv AND o.message = ANY (h.open_messages) AND NOT o.message = ANY (p_open);
  UPDATE cs_conversation t SET
    commit_no = c, next_seq = o_seq + 1, last_activity = greatest(h.last_activity, p_now),
    minute = cs_minute_v1(greatest(h.last_activity, p_now)),
    title = p_title, title_kind = p_title_kind, title_message = p_title_message, tags = p_tags,
    last_hide = p_last_hide, last_meta = p_last_meta, open_messages = p_open, interrupted = p_interrupted
  WHERE t.conv_id = p_conv;
END $$;

-- Makes a conversation that reads another one's entries. p_chain: all that p_named reads; p_redactions: as they were when the
-- fork's title was read.
CREATE OR REPLACE FUNCTION cs_fork_v1(
  p_named bytea, p_named_incarnation bigint, p_chain bytea[], p_redactions bigint,
  p_conv bytea, p_owner bytea, p_key bytea, p_now bigint, p_random bigint,
  p_parent bytea, p_parent_seq bigint, p_parent_incarnation bigint, p_parent_commit bigint,
  p_next_message bigint, p_last_hide bigint, p_last_meta bigint,
  p_title bytea, p_title_kind smallint, p_title_message bigint, p_tags bytea[],
  OUT o_outcome integer, OUT o_last bigint
) LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  c bigint;
  was_deleted boolean;
BEGIN
  PERFORM FROM cs_conversation t WHERE t.conv_id = ANY (p_chain) ORDER BY t.conv_id FOR SHARE;
  PERFORM FROM cs_conversation t
    WHERE t.conv_id = p_named AND t.incarnation = p_named_incarnation AND NOT t.deleted;
  IF NOT FOUND THEN o_outcome := 10; RETURN; END IF;
  IF cs_redactions_v1(p_named) <> p_redactions THEN o_outcome := 8; RETURN; END IF;
  LOOP
    c := cs_commit_v1(p_parent_commit);
    INSERT INTO cs_conversation VALUES (
      p_conv, ((c - 1) << 20) | p_random, c, p_parent_seq + 1, p_next_message, p_last_hide, p_last_meta, p_now, p_now,
      cs_minute_v1(p_now), p_owner, p_key, p_parent, p_parent_seq, p_parent_incarnation, p_parent_commit,
      p_last_hide, p_last_meta, p_next_message, c, p_title, p_title_kind, p_title_message, p_tags, '{}', '{}', 0, false
    ) ON CONFLICT (conv_id) DO NOTHING;
    IF FOUND THEN o_outcome := 0; RETURN; END IF;
    SELECT t.next_seq - 1, t.deleted INTO o_last, was_deleted FROM cs_conversation t WHERE t.conv_id = p_conv;
    IF FOUND THEN
      o_outcome := CASE WHEN was_deleted THEN 4 ELSE 2 END;
      RETURN;
    END IF;
  END LOOP;
END $$;

-- Deletes a conversation; of one that forks read, what comes after the last fork point. Then, of the one that it was forked
-- from, if that was deleted too. p_seq, p_incarnation: where it has to end, and which it has to be. o_kept: of what was kept,
-- a record may go on after o_keep_to. o_last: its last seq, if it does not end at p_seq.
CREATE OR REPLACE FUNCTION cs_delete_v1(p_conv bytea, p_owner bytea, p_seq bigint, p_incarnation bigint,
  OUT o_outcome integer, OUT o_kept bytea, OUT o_keep_to bigint, OUT o_last bigint
) LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  h cs_conversation%ROWTYPE;
  locked bytea[] := cs_line_v1(p_conv);
BEGIN
  PERFORM FROM cs_conversation t WHERE t.conv_id = ANY (locked) ORDER BY t.conv_id FOR UPDATE;
  -- Another one may have its name by now: the caller tries again.
  IF NOT cs_line_v1(p_conv) <@ locked THEN
    RAISE EXCEPTION 'the conversation was made at the same moment' USING ERRCODE = 'serialization_failure';
  END IF;
  SELECT * INTO h FROM cs_conversation t WHERE t.conv_id = p_conv;
  IF NOT FOUND OR h.deleted OR (p_owner IS NOT NULL AND h.owner <> p_owner) THEN o_outcome := 10; RETURN; END IF;
  IF h.incarnation <> p_incarnation THEN o_outcome := 8; RETURN; END IF;
  IF h.next_seq - 1 <> p_seq THEN o_outcome := 2; o_last := h.next_seq - 1; RETURN; END IF;
  o_outcome := 0;
  UPDATE cs_conversation t SET deleted = true, commit_no = cs_commit_v1(h.commit_no), title = NULL, title_kind = 0,
    title_message = 0, tags = '{}', open_messages = '{}', interrupted = '{}'
  WHERE t.conv_id = p_conv;
  LOOP
    DELETE FROM cs_open o WHERE o.conv_id = h.conv_id;
    DELETE FROM cs_key k WHERE k.conv_id = h.conv_id;
    SELECT max(t.parent_seq) INTO o_keep_to FROM cs_conversation t
      WHERE t.parent_id = h.conv_id AND t.parent_incarnation = h.incarnation AND t.parent_seq > 0;
    IF o_keep_to IS NOT NULL THEN
      DELETE FROM cs_item i WHERE i.conv_id = h.conv_id AND i.seq > o_keep_to;
      DELETE FROM cs_record r WHERE r.conv_id = h.conv_id AND r.first_seq > o_keep_to;
      UPDATE cs_conversation t SET commit_no = cs_commit_v1(t.commit_no) WHERE t.conv_id = h.conv_id;
      o_kept := h.conv_id;
      RETURN;
    END IF;
    DELETE FROM cs_item i WHERE i.conv_id = h.conv_id;
    DELETE FROM cs_record r WHERE r.conv_id = h.conv_id;
    DELETE FROM cs_conversation t WHERE t.conv_id = h.conv_id;
    EXIT WHEN h.parent_id IS NULL OR h.parent_seq = 0;
    SELECT * INTO h FROM cs_conversation t
      WHERE t.conv_id = h.parent_id AND t.incarnation = h.parent_incarnation;
    EXIT WHEN NOT FOUND OR NOT h.deleted;
  END LOOP;
END $$;

-- Writes the last record of a deleted conversation again, without what comes after the last fork point.
CREATE OR REPLACE FUNCTION cs_truncate_v1(
  p_conv bytea, p_incarnation bigint, p_keep_to bigint, p_redactions bigint,
  p_first bigint, p_body bytea, p_entries bigint, p_next_message bigint, p_cut boolean,
  OUT o_outcome integer
) LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  h cs_conversation%ROWTYPE;
  keep_to bigint;
BEGIN
  SELECT * INTO h FROM cs_conversation t WHERE t.conv_id = p_conv FOR UPDATE;
  IF NOT FOUND OR NOT h.deleted OR h.incarnation <> p_incarnation THEN o_outcome := 10; RETURN; END IF;
  SELECT max(t.parent_seq) INTO keep_to FROM cs_conversation t
    WHERE t.parent_id = h.conv_id AND t.parent_incarnation = h.incarnation AND t.parent_seq > 0;
  IF keep_to IS DISTINCT FROM p_keep_to OR h.redactions <> p_redactions THEN o_outcome := 8; RETURN; END IF;
  UPDATE cs_record r SET body = p_body, entries = p_entries, next_message = p_next_message, cut = p_cut
    WHERE r.conv_id = p_conv AND r.first_seq = p_first;
  UPDATE cs_conversation t SET commit_no = cs_commit_v1(t.commit_no) WHERE t.conv_id = p_conv;
  o_outcome := 0;
END $$;

-- Writes records again without what was said, and an entry that says so. p_locks, p_commits: the conversations that were
-- read for it, as they were. p_from: the seq with which the message begins.
CREATE OR REPLACE FUNCTION cs_redact_v1(
  p_conv bytea, p_now bigint, p_message bigint, p_from bigint, p_body bytea, p_locks bytea[], p_commits bigint[],
  p_owners bytea[], p_firsts bigint[], p_lasts bigint[], p_bodies bytea[],
  OUT o_outcome integer, OUT o_seq bigint
) LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  h cs_conversation%ROWTYPE;
  unchanged bigint;
  locked bytea[] := p_locks || cs_titled_v1(p_owners || p_conv, p_message, p_from);
  titled bytea[];
BEGIN
  PERFORM FROM cs_conversation t WHERE t.conv_id = ANY (locked) ORDER BY t.conv_id FOR UPDATE;
  titled := cs_titled_v1(p_owners || p_conv, p_message, p_from);
  SELECT count(*) INTO unchanged
    FROM cs_conversation t JOIN unnest(p_locks, p_commits) AS u(id, commit_no) ON u.id = t.conv_id
    WHERE t.commit_no = u.commit_no;
  IF unchanged <> cardinality(p_locks) OR NOT titled <@ locked THEN o_outcome := 8; RETURN; END IF;
  UPDATE cs_record r SET body = u.body FROM unnest(p_owners, p_firsts, p_bodies) AS u(id, first, body)
    WHERE r.conv_id = u.id AND r.first_seq = u.first;
  UPDATE cs_key k SET content = decode('00000000000000000000000000000000', 'hex')
    FROM unnest(p_owners, p_firsts, p_lasts) AS u(id, first, last)
    WHERE k.conv_id = u.id AND k.first_seq <= u.last AND k.last_seq >= u.first;
  UPDATE cs_conversation t SET redactions = redactions + 1, commit_no = cs_commit_v1(t.commit_no)
    WHERE t.conv_id = ANY (p_owners);
  UPDATE cs_conversation t SET title = NULL, title_kind = 0, title_message = 0, commit_no = cs_commit_v1(t.commit_no)
    WHERE t.conv_id = ANY (titled);
  SELECT * INTO h FROM cs_conversation t WHERE t.conv_id = p_conv;
  o_outcome := 0;
  o_seq := h.next_seq;
  INSERT INTO cs_record VALUES (
    p_conv, o_seq, h.incarnation, cs_commit_v1(h.commit_no), p_now, h.next_message, h.next_message, 1, false, p_body);
  UPDATE cs_conversation t SET
    commit_no = cs_commit_v1(h.commit_no), next_seq = o_seq + 1, last_activity = greatest(h.last_activity, p_now),
    minute = cs_minute_v1(greatest(h.last_activity, p_now))
  WHERE t.conv_id = p_conv;
END $$;
