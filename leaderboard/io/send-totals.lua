-- Raises a room's totals in its tenant's boards, and never lowers them. A board that is never archived expires.
--
-- KEYS  for each window, the tenant's board
-- ARGV  the room; then, for each board, the room's total and the board's latest expiry in milliseconds since 1970 (0: never)

for index, board in ipairs(KEYS) do
  redis.call("ZADD", board, "GT", ARGV[2 * index], ARGV[1])
  if ARGV[2 * index + 1] ~= "0" and redis.call("PTTL", board) == -1 then redis.call("PEXPIREAT", board, ARGV[2 * index + 1]) end
end
