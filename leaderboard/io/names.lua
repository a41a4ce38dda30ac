-- Stores a user's display name in a room or tenant, unless the room is deleted. Check and write are one step, so that no
-- removal happens in between. The names of a room of which nothing is counted expire: anybody may join any room, and
-- nothing removes the names of a room that is never edited.
--
-- KEYS  the room's `applied`, which a tenant does not have; the names of the room or tenant; a key that never exists, so that
--       Redis rejects the call while the slot moves
-- ARGV  the user; the name; the maximum number of stored names of this room or tenant; milliseconds until they expire where
--       nothing is counted, 0 for a tenant
-- Returns 1 if the maximum is reached, otherwise nothing.

if redis.call("HEXISTS", KEYS[1], "deleted") == 1 then return end
if redis.call("HLEN", KEYS[2]) >= tonumber(ARGV[3]) and redis.call("HEXISTS", KEYS[2], ARGV[1]) == 0 then return 1 end
redis.call("HSET", KEYS[2], ARGV[1], ARGV[2])
if ARGV[4] == "0" then return end
if redis.call("EXISTS", KEYS[1]) == 1 then redis.call("PERSIST", KEYS[2]) else redis.call("PEXPIRE", KEYS[2], ARGV[4]) end
