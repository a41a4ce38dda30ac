-- Writes a sentinel if the last known one, or a later one of the same service, is still there. A Redis that was restored
-- from a backup holds an older sentinel: it stays, so that the next leaderboard finds it too.
--
-- KEYS  the partition's progress
-- ARGV  the service of the last known sentinel, its number, and the sentinel to write
-- Returns 1, or 0 if nothing was written.

local found = redis.call("GET", KEYS[1])
if not found then return 0 end
local last = cjson.decode(found)
if last.service ~= ARGV[1] or (last.number or 0) < tonumber(ARGV[2]) then return 0 end
redis.call("SET", KEYS[1], ARGV[3])
return 1
