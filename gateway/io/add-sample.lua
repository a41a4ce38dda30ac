-- Adds the open connections of a gateway to the sums of a moment, and returns the sums so far. A part that the moment
-- already contains adds nothing, so that a gateway may send it again after a lost answer.
--
-- KEYS  the hash of the moment
-- ARGV  the field of the gateway's part, the time at which Redis forgets the moment, the largest number of fields; then
--       each tenant with its number of connections. The sum of a tenant without space is 0.

local moment, part, fieldsMax = KEYS[1], ARGV[1], tonumber(ARGV[3])
local isKnown = redis.call("HGET", moment, part)
-- Before the sums: a script that breaks off may add too little, and never twice.
redis.call("HSET", moment, part, 1)

local sums = {}
for index = 4, #ARGV, 2 do
  local tenant = ARGV[index]
  local kept = redis.call("HGET", moment, tenant)
  local sum = tonumber(kept or "0")
  if not isKnown and (kept or redis.call("HLEN", moment) < fieldsMax) then
    sum = sum + tonumber(ARGV[index + 1])
    redis.call("HSET", moment, tenant, sum)
  end
  sums[#sums + 1] = sum
end
redis.call("PEXPIREAT", moment, ARGV[2])
return sums
