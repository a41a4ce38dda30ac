-- Counts one batch of a room's activity: checks how far the room is counted, adds to every board, and moves
-- that mark on, all or nothing. So a batch counts once, whoever sends it again, and a writer that was
-- replaced unknowingly is turned away. Numbers are doubles: whole to 2^53, and printed with %.0f only.
--
-- KEYS  applied, the caps' uses, then of each board: hot, full, counts, and the beginning of the names of its bands'
--       sorted sets (a group's windows one after the other)
-- ARGV  the seq and the activity counted so far; the applied hash as one list of fields and values, after its
--       length; members kept in a hot set; 1 if all of a longer board are kept in order too; of each use: 1 if another stretch of time has begun, and its users with
--       points, after their number; windows; groups; of each group its awards, after their number: member, points,
--       stamp
-- Returns an empty list, or the seq and the activity that are counted in truth and nothing done.

local SCORE_MAX = 9007199254740992
local STAMP = 9
local CAPS = 3

local seq, activity = unpack(redis.call("HMGET", KEYS[1], "seq", "activity"))
seq, activity = seq or "0", activity or "0"
if tonumber(seq) ~= tonumber(ARGV[1]) or tonumber(activity) ~= tonumber(ARGV[2]) then return { seq, activity } end

local at = 3
local function take()
  at = at + 1
  return ARGV[at - 1]
end
local function takeList(width)
  local first, length = at + 1, tonumber(ARGV[at]) * width
  at = first + length
  return first, at - 1
end

local first, last = takeList(2)
redis.call("HSET", KEYS[1], unpack(ARGV, first, last))
local hotMembers, isOrdered = tonumber(take()), take() == "1"

for cap = 1, CAPS do
  if take() == "1" then redis.call("DEL", KEYS[1 + cap]) end
  first, last = takeList(2)
  if last >= first then redis.call("HSET", KEYS[1 + cap], unpack(ARGV, first, last)) end
end

local function bandOf(score)
  local mantissa, exponent = math.frexp(score)
  return (exponent - 1) * 8 + math.floor((mantissa * 2 - 1) * 8)
end

-- The later of two: stamps fall as instants rise. By their bytes, whatever language the server is set to.
local function later(a, b)
  for place = 1, STAMP do
    local x, y = string.byte(a, place), string.byte(b, place)
    if x ~= y then return x < y and a or b end
  end
  return a
end

local function bandKey(beginning, band)
  return beginning .. string.format("%d", band)
end

-- The tail of a board, in order: a sorted set for each band of scores. Kept from when there is a tail, and given up
-- when it is not wanted any more. A board that was longer than this before it was wanted stays without.
local ORDERED_AT_ONCE = 5000
local function order(full, counts, beginning, members, moved)
  local was = redis.call("HGET", counts, "ordered") == "1"
  if not isOrdered then
    if not was then return end
    for _, band in ipairs(redis.call("HKEYS", counts)) do if tonumber(band) then redis.call("UNLINK", bandKey(beginning, band)) end end
    redis.call("HDEL", counts, "ordered")
  elseif was then
    for _, move in ipairs(moved) do
      if move.left then redis.call("ZREM", bandKey(beginning, move.oldBand), move.left) end
      redis.call("ZADD", bandKey(beginning, move.band), move.score, move.entered)
    end
  elseif members > hotMembers and members <= ORDERED_AT_ONCE then
    local flat = redis.call("HGETALL", full)
    for index = 1, #flat, 2 do
      local score = string.sub(flat[index + 1], STAMP + 1)
      redis.call("ZADD", bandKey(beginning, bandOf(tonumber(score))), score, string.sub(flat[index + 1], 1, STAMP) .. flat[index])
    end
    redis.call("HSET", counts, "ordered", "1")
  end
end

local function add(hot, full, counts, bands, from, to)
  local members = {}
  for index = from, to, 3 do members[#members + 1] = ARGV[index] end
  local before = redis.call("HMGET", full, unpack(members))
  local leaving, entering, standing, moves, moved, points = {}, {}, {}, {}, {}, 0
  for index, member in ipairs(members) do
    local old, score = before[index], 0
    if old then
      score = tonumber(string.sub(old, STAMP + 1))
      leaving[#leaving + 1] = string.sub(old, 1, STAMP) .. member
    end
    local award = from + (index - 1) * 3
    local now = math.min(score + tonumber(ARGV[award + 1]), SCORE_MAX)
    local stamp = ARGV[award + 2]
    -- At the very top nothing changes any more: whoever got there first stays ahead.
    if now == score then stamp = string.sub(old, 1, STAMP) elseif old then stamp = later(old, stamp) end
    stamp = string.sub(stamp, 1, STAMP)
    local text = string.format("%.0f", now)
    standing[#standing + 1] = member
    standing[#standing + 1] = stamp .. text
    entering[#entering + 1] = text
    entering[#entering + 1] = stamp .. member
    points = points + now - score
    local band, oldBand = bandOf(now), old and bandOf(score)
    moved[index] = { band = band, oldBand = oldBand, left = old and string.sub(old, 1, STAMP) .. member, score = text, entered = stamp .. member }
    if old then
      if oldBand ~= band then moves[oldBand] = (moves[oldBand] or 0) - 1 end
      if oldBand ~= band then moves[band] = (moves[band] or 0) + 1 end
    else
      moves[band] = (moves[band] or 0) + 1
    end
  end
  redis.call("HSET", full, unpack(standing))
  if #leaving > 0 then redis.call("ZREM", hot, unpack(leaving)) end
  -- Scores only rise: whoever stands behind a full hot set is passed by nobody but these.
  redis.call("ZADD", hot, unpack(entering))
  redis.call("ZREMRANGEBYRANK", hot, 0, -hotMembers - 1)
  for band, members in pairs(moves) do
    if members ~= 0 and redis.call("HINCRBY", counts, band, members) == 0 then redis.call("HDEL", counts, band) end
  end
  redis.call("HINCRBY", counts, "points", string.format("%.0f", points))
  order(full, counts, bands, redis.call("HLEN", full), moved)
end

local windows, groups = tonumber(take()), tonumber(take())
local key = 2 + CAPS
for _ = 1, groups do
  first, last = takeList(3)
  for _ = 1, windows do
    if last >= first then add(KEYS[key], KEYS[key + 1], KEYS[key + 2], KEYS[key + 3], first, last) end
    key = key + 4
  end
end
return {}
