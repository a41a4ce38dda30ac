-- Counts one batch of a room's activity: checks how far the room is counted, adds to every board, and moves
-- that mark on, all or nothing. So a batch counts once, whoever sends it again, and a writer that was
-- replaced unknowingly is turned away. Numbers are doubles: whole to 2^53, and printed with %.0f only.
--
-- KEYS  applied, minute, then of each board: hot, full, counts (a group's windows one after the other)
-- ARGV  the seq counted so far; the applied hash as one list of fields and values, after its length;
--       members kept in a hot set; 1 if another minute has begun; users of the minute with points, after
--       their number; windows; groups; of each group its awards, after their number: member, points, stamp
-- Returns -1, or the seq that is counted in truth and nothing done.

local SCORE_MAX = 9007199254740992
local STAMP = 9

local counted = tonumber(redis.call("HGET", KEYS[1], "seq") or "0")
if counted ~= tonumber(ARGV[1]) then return counted end

local at = 2
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
local hotMembers = tonumber(take())

if take() == "1" then redis.call("DEL", KEYS[2]) end
first, last = takeList(2)
if last >= first then redis.call("HSET", KEYS[2], unpack(ARGV, first, last)) end

local function bandOf(score)
  local mantissa, exponent = math.frexp(score)
  return (exponent - 1) * 8 + math.floor((mantissa * 2 - 1) * 8)
end

local function add(hot, full, counts, from, to)
  local members = {}
  for index = from, to, 3 do members[#members + 1] = ARGV[index] end
  local before = redis.call("HMGET", full, unpack(members))
  local leaving, entering, standing, moves, points = {}, {}, {}, {}, 0
  for index, member in ipairs(members) do
    local old, score = before[index], 0
    if old then
      score = tonumber(string.sub(old, STAMP + 1))
      leaving[#leaving + 1] = string.sub(old, 1, STAMP) .. member
    end
    local award = from + (index - 1) * 3
    local now = math.min(score + tonumber(ARGV[award + 1]), SCORE_MAX)
    -- At the very top nothing changes any more: whoever got there first stays ahead.
    local stamp = now == score and string.sub(old, 1, STAMP) or ARGV[award + 2]
    local text = string.format("%.0f", now)
    standing[#standing + 1] = member
    standing[#standing + 1] = stamp .. text
    entering[#entering + 1] = text
    entering[#entering + 1] = stamp .. member
    points = points + now - score
    local band = bandOf(now)
    if old then
      local oldBand = bandOf(score)
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
end

local windows, groups = tonumber(take()), tonumber(take())
local key = 3
for _ = 1, groups do
  first, last = takeList(3)
  for _ = 1, windows do
    if last >= first then add(KEYS[key], KEYS[key + 1], KEYS[key + 2], first, last) end
    key = key + 3
  end
end
return -1
