-- Stores a user's display name in a room or tenant, unless the room is deleted. Check and write are one step, so that no
-- removal happens in between.
--
-- KEYS  the room's `applied`, which a tenant does not have; the names of the room or tenant; a key that never exists, so that
--       Redis rejects the call while the slot moves
-- ARGV  the user; the name; the maximum number of stored names of this room or tenant
-- Returns 1 if the maximum is reached, otherwise nothing.

if redis.call("HEXISTS", KEYS[1], "deleted") == 1 then return end
if redis.call("HLEN", KEYS[2]) >= tonumber(ARGV[3]) and redis.call("HEXISTS", KEYS[2], ARGV[1]) == 0 then return 1 end
redis.call("HSET", KEYS[2], ARGV[1], ARGV[2])
