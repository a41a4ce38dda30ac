-- Brings a room's totals on its tenant's boards up, never down. A board that nobody comes to archive goes in the end.
--
-- KEYS  the tenant's board of each window
-- ARGV  the room, and then of each its total and when the board is to go at the latest; 0: never

for index, board in ipairs(KEYS) do
  redis.call("ZADD", board, "GT", ARGV[2 * index], ARGV[1])
  if ARGV[2 * index + 1] ~= "0" and redis.call("PTTL", board) == -1 then redis.call("PEXPIREAT", board, ARGV[2 * index + 1]) end
end
