-- Raises a value of tenants on a day to the given ones: the highest stored bytes, or the highest number of connections.
-- Less than the day has, or the same again, changes nothing. A tenant without a field gets one if there is space. Returns
-- the number of tenants that got none.
--
-- KEYS  the hash of the day
-- ARGV  the time at which Redis forgets the day, the largest number of fields, the place of the value among the values of
--       a field; then each tenant with its value

local day, fieldsMax, place, leftOut = KEYS[1], tonumber(ARGV[2]), tonumber(ARGV[3]), 0

local function raise(tenant, kept, value)
  local values = numbersIn(kept or "")
  for index = #values + 1, place do values[index] = 0 end
  if value <= values[place] then return end
  values[place] = value
  redis.call("HSET", day, tenant, textOf(values))
end

for index = 4, #ARGV, 2 do
  local tenant = ARGV[index]
  local kept = redis.call("HGET", day, tenant)
  if kept or redis.call("HLEN", day) < fieldsMax then
    raise(tenant, kept, tonumber(ARGV[index + 1]))
  else
    leftOut = leftOut + 1
  end
end
redis.call("PEXPIREAT", day, ARGV[1])
return leftOut
