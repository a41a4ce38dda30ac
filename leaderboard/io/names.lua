-- Stores how a user is called, unless the room is deleted: in one step, so that no removal comes between.
--
-- KEYS  applied, the room's names, and one that is never there: of a room that moves to another server nothing begins
-- ARGV  the user, the name, and how many names of a room are stored
-- Returns nothing.

if redis.call("HEXISTS", KEYS[1], "deleted") == 1 then return end
if redis.call("HLEN", KEYS[2]) >= tonumber(ARGV[3]) and redis.call("HEXISTS", KEYS[2], ARGV[1]) == 0 then return end
redis.call("HSET", KEYS[2], ARGV[1], ARGV[2])
