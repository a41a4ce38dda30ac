-- Puts a room's boards back as a checkpoint holds them, unless Redis has counted as far or farther.
--
-- KEYS  applied, the caps' uses, then of each board: hot, full, counts, and the beginning of its bands' names
-- ARGV  the checkpoint's seq and activity; the applied hash, after its length; members kept in a hot set; 1 if all
--       of a longer board are kept in order too; of each
--       use its users with points, after their number; of each board its members, the first ahead, after their
--       number: member, stamp, score
-- Returns an empty list, or the seq and the activity that are counted and nothing done.

local CAPS = 3

local seq, activity = unpack(redis.call("HMGET", KEYS[1], "seq", "activity"))
seq, activity = seq or "0", activity or "0"
if tonumber(seq) >= tonumber(ARGV[1]) and tonumber(activity) >= tonumber(ARGV[2]) then return { seq, activity } end

local at = 3
local function take()
  at = at + 1
  return ARGV[at - 1]
end

redis.call("DEL", unpack(KEYS, 1, 1 + CAPS))
local function takeHash(key)
  for _ = 1, tonumber(take()) do
    local field, value = take(), take()
    redis.call("HSET", key, field, value)
  end
end

takeHash(KEYS[1])
local hotMembers, isOrdered = tonumber(take()), take() == "1"
for cap = 1, CAPS do takeHash(KEYS[1 + cap]) end

local function bandOf(score)
  local mantissa, exponent = math.frexp(score)
  return (exponent - 1) * 8 + math.floor((mantissa * 2 - 1) * 8)
end

for key = 2 + CAPS, #KEYS, 4 do
  local hot, full, counts, beginning = KEYS[key], KEYS[key + 1], KEYS[key + 2], KEYS[key + 3]
  for _, band in ipairs(redis.call("HKEYS", counts)) do if tonumber(band) then redis.call("UNLINK", beginning .. band) end end
  redis.call("DEL", hot, full, counts)
  local bands, points, members = {}, 0, tonumber(take())
  local hasTail = isOrdered and members > hotMembers
  for rank = 1, members do
    local member, stamp, score = take(), take(), take()
    redis.call("HSET", full, member, stamp .. score)
    if rank <= hotMembers then redis.call("ZADD", hot, score, stamp .. member) end
    local number = tonumber(score)
    points = points + number
    bands[bandOf(number)] = (bands[bandOf(number)] or 0) + 1
    if hasTail then redis.call("ZADD", beginning .. string.format("%d", bandOf(number)), score, stamp .. member) end
  end
  for band, members in pairs(bands) do redis.call("HSET", counts, band, members) end
  redis.call("HSET", counts, "points", string.format("%.0f", points))
  if hasTail then redis.call("HSET", counts, "ordered", "1") end
end
return {}
