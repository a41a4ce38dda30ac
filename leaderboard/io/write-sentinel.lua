-- Writes a sentinel if Redis still holds the last known sentinel, or a later one of the same service. A Redis that was
-- restored from a backup holds an older sentinel. That one stays, so that the next leaderboard also detects the loss.
--
-- KEYS  the partition's progress
-- ARGV  service and number of the last known sentinel; the progress report with the sentinel to write
-- Returns 1, or 0 if nothing was written.

local found = redis.call("GET", KEYS[1])
if not found then return 0 end
local last = cjson.decode(found)
if last.service ~= ARGV[1] or (last.number or 0) < tonumber(ARGV[2]) then return 0 end
redis.call("SET", KEYS[1], ARGV[3])
return 1
