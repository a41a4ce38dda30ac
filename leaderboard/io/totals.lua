-- Reads the sum of all members' points of each board.
--
-- KEYS  counts of each board
-- Returns the sum of each board, as text.

local sums = {}
for index, counts in ipairs(KEYS) do sums[index] = redis.call("HGET", counts, "points") or "0" end
return sums
