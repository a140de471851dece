-- What makes a commit write less.

-- What the documents of a chunk are active in (queue.chunk): the chunk itself, or the first of a
-- row of chunks that one holder commits one after the other, each of which leaves documents
-- active for the next. They keep the name of that first chunk, and are not rewritten.
ALTER TABLE chunks ADD COLUMN claim BIGINT NOT NULL DEFAULT 0;
UPDATE chunks SET claim = id WHERE state = 'crawling';
