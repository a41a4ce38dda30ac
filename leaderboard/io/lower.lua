-- Takes the points of a deleted room from members of its tenant's board in one atomic step. A repeated call takes nothing. The
-- instant at which a member reached its score stays.
--
-- KEYS  a key that never exists; the hash of the members' parts (see raise.lua)
-- ARGV  1. number of members in a hot set
--       2. the board's keys hot, full and counts, and the prefix of its bands' keys, in JSON
--       3. members, in JSON
-- Returns nothing.

hotMembers = tonumber(ARGV[1])
local hot, full, counts, beginning = unpack(cjson.decode(ARGV[2]))
local isInOrder = redis.call("HGET", counts, "ordered") == "1"

local function count(band, members)
  if redis.call("HINCRBY", counts, band, members) == 0 then redis.call("HDEL", counts, band) end
end

for _, member in ipairs(cjson.decode(ARGV[3])) do
  local part, own = redis.call("HGET", KEYS[2], member), redis.call("HGET", full, member)
  if part and own then
    local stamp, score = string.sub(own, 1, STAMP), tonumber(string.sub(own, STAMP + 1))
    local left = math.max(0, score - tonumber(string.sub(part, STAMP + 1)))
    redis.call("HDEL", KEYS[2], member)
    count(bandOf(score), -1)
    if isInOrder then redis.call("ZREM", bandKey(beginning, bandOf(score)), stamp .. member) end
    redis.call("HINCRBY", counts, "points", string.format("%.0f", left - score))
    if left == 0 then
      redis.call("HDEL", full, member)
    else
      local text = string.format("%.0f", left)
      redis.call("HSET", full, member, stamp .. text)
      count(bandOf(left), 1)
      if isInOrder then redis.call("ZADD", bandKey(beginning, bandOf(left)), text, stamp .. member) end
    end
  end
end

-- Fills the hot set again: members behind it may now be ahead of the lowered ones. A board that is not in order has few
-- members more than the hot set.
redis.call("DEL", hot)
if isInOrder then
  local bands = {}
  for _, band in ipairs(redis.call("HKEYS", counts)) do if tonumber(band) then bands[#bands + 1] = tonumber(band) end end
  table.sort(bands, function(a, b) return a > b end)
  local free = hotMembers
  for _, band in ipairs(bands) do
    if free == 0 then break end
    local entries = redis.call("ZREVRANGE", bandKey(beginning, band), 0, free - 1, "WITHSCORES")
    for index = 1, #entries, 2 do redis.call("ZADD", hot, entries[index + 1], entries[index]) end
    free = free - #entries / 2
  end
else
  local flat = redis.call("HGETALL", full)
  for index = 1, #flat, 2 do
    redis.call("ZADD", hot, string.sub(flat[index + 1], STAMP + 1), string.sub(flat[index + 1], 1, STAMP) .. flat[index])
  end
  redis.call("ZREMRANGEBYRANK", hot, 0, -hotMembers - 1)
end
