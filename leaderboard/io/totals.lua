-- What all members of a room's boards have together.
--
-- KEYS  counts of each board
-- Returns of each the sum, as text

local sums = {}
for index, counts in ipairs(KEYS) do sums[index] = redis.call("HGET", counts, "points") or "0" end
return sums
