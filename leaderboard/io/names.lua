-- Stores a user's display name, unless the room is deleted. Check and write are one step, so that no removal happens in between.
--
-- KEYS  applied; the room's names; a key that never exists, so that Redis rejects the call while the room's slot moves
-- ARGV  the user; the name; the maximum number of stored names of a room
-- Returns nothing.

if redis.call("HEXISTS", KEYS[1], "deleted") == 1 then return end
if redis.call("HLEN", KEYS[2]) >= tonumber(ARGV[3]) and redis.call("HEXISTS", KEYS[2], ARGV[1]) == 0 then return end
redis.call("HSET", KEYS[2], ARGV[1], ARGV[2])
