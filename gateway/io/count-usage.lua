-- Adds a batch of usage to a day. A batch that the day already contains adds nothing, so that a gateway may send it again
-- after a lost answer.
--
-- KEYS  the hash of the day
-- ARGV  the field of the gateway's last batch, the number of this batch, the time at which Redis forgets the day, the
--       largest number of fields, the name for further tenants; then each tenant with its counts, separated by spaces

local day, batch, number, fieldsMax, others = KEYS[1], ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[4]), ARGV[5]
if number <= tonumber(redis.call("HGET", day, batch) or "0") then return 0 end

local function add(tenant, kept, counts)
  local sums, more = numbersIn(kept or ""), numbersIn(counts)
  for index = 1, math.max(#sums, #more) do
    sums[index] = (sums[index] or 0) + (more[index] or 0)
  end
  redis.call("HSET", day, tenant, textOf(sums))
end

for index = 6, #ARGV, 2 do
  local tenant = ARGV[index]
  local kept = redis.call("HGET", day, tenant)
  if not kept and redis.call("HLEN", day) >= fieldsMax then
    tenant = others
    kept = redis.call("HGET", day, tenant)
  end
  add(tenant, kept, ARGV[index + 1])
end
redis.call("HSET", day, batch, ARGV[2])
redis.call("PEXPIREAT", day, ARGV[3])
return 1
