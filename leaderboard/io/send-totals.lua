-- Raises a room's totals in its tenant's boards, never lowers them. A board that is never archived expires.
--
-- KEYS  the tenant's board of each window
-- ARGV  the room; then for each board its total and when the board expires at the latest (0: never)

for index, board in ipairs(KEYS) do
  redis.call("ZADD", board, "GT", ARGV[2 * index], ARGV[1])
  if ARGV[2 * index + 1] ~= "0" and redis.call("PTTL", board) == -1 then redis.call("PEXPIREAT", board, ARGV[2 * index + 1]) end
end
