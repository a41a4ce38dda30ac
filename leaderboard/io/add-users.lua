-- Adds users to the counted users of a tenant's windows. A window that is never archived expires.
--
-- KEYS  for each window, the HyperLogLog of its users
-- ARGV  for each window, the latest expiry in milliseconds since 1970 (0: never); then the users

local AT_ONCE = 1000 -- A call takes no more than 8000.

for index, people in ipairs(KEYS) do
  for first = #KEYS + 1, #ARGV, AT_ONCE do redis.call("PFADD", people, unpack(ARGV, first, math.min(first + AT_ONCE - 1, #ARGV))) end
  if ARGV[index] ~= "0" then redis.call("PEXPIREAT", people, ARGV[index]) end
end
