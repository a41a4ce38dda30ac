-- Adds users to the counted users of a tenant's windows. A window that is never archived expires.
--
-- KEYS  the tenant's users of each window
-- ARGV  for each window when it expires at the latest (0: never), and then the users

local AT_ONCE = 1000 -- A call takes no more than 8000.

for index, people in ipairs(KEYS) do
  for first = #KEYS + 1, #ARGV, AT_ONCE do redis.call("PFADD", people, unpack(ARGV, first, math.min(first + AT_ONCE - 1, #ARGV))) end
  if ARGV[index] ~= "0" then redis.call("PEXPIREAT", people, ARGV[index]) end
end
