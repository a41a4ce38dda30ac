-- Functions of the scripts that write or read boards. `defineScripts` puts this file in front of theirs.
-- Numbers are doubles: exact integers up to 2^53, printed with %.0f only.

local SCORE_MAX = 9007199254740992
local STAMP = 9

-- Each script that writes sets both: the number of members in a hot set, and whether the members behind it are kept in
-- order too.
local hotMembers, isOrdered

local function bandOf(score)
  local mantissa, exponent = math.frexp(score)
  return (exponent - 1) * 8 + math.floor((mantissa * 2 - 1) * 8)
end

-- Returns the stamp of the later time: a later time has a lower stamp. Compares bytes, independent of the locale.
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

-- Maximum members of a board that one batch puts in order; a longer board stays as it is.
local ORDERED_AT_ONCE = 5000

-- Returns the maximum size of the hot set. After its maximum was raised, the next members of the board are added. Adding only
-- members of the batch would place them ahead of members with more points.
local function hotMax(hot, full)
  local held, members = redis.call("ZCARD", hot), redis.call("HLEN", full)
  if held >= math.min(members, hotMembers) then return hotMembers end
  if members > ORDERED_AT_ONCE then return held end
  local flat = redis.call("HGETALL", full)
  for index = 1, #flat, 2 do
    redis.call("ZADD", hot, string.sub(flat[index + 1], STAMP + 1), string.sub(flat[index + 1], 1, STAMP) .. flat[index])
  end
  return hotMembers
end

-- The tail of a board in order: one sorted set for each score band. Created with the tail, and removed after exact ranks
-- were switched off.
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

local function add(group, hot, full, counts, bands)
  local members = group.members
  local kept = hotMax(hot, full)
  local before = redis.call("HMGET", full, unpack(members))
  local leaving, entering, standing, moves, moved, points = {}, {}, {}, {}, {}, 0
  for index, member in ipairs(members) do
    local old, oldStamp, score = before[index], nil, 0
    if old then
      oldStamp, score = string.sub(old, 1, STAMP), tonumber(string.sub(old, STAMP + 1))
      leaving[#leaving + 1] = oldStamp .. member
    end
    local now = math.min(score + group.points[index], SCORE_MAX)
    local stamp = group.stamps[index]
    -- At the maximum score nothing changes: the member that reached it first stays ahead.
    if score == SCORE_MAX then stamp = oldStamp elseif old then stamp = later(oldStamp, stamp) end
    local text = string.format("%.0f", now)
    standing[#standing + 1] = member
    standing[#standing + 1] = stamp .. text
    entering[#entering + 1] = text
    entering[#entering + 1] = stamp .. member
    points = points + now - score
    local band, oldBand = bandOf(now), old and bandOf(score)
    moved[index] = { band = band, oldBand = oldBand, left = old and oldStamp .. member, score = text, entered = stamp .. member }
    if old then
      if oldBand ~= band then moves[oldBand] = (moves[oldBand] or 0) - 1 end
      if oldBand ~= band then moves[band] = (moves[band] or 0) + 1 end
    else
      moves[band] = (moves[band] or 0) + 1
    end
  end
  redis.call("HSET", full, unpack(standing))
  if #leaving > 0 then redis.call("ZREM", hot, unpack(leaving)) end
  -- Scores only rise: only members of this batch can enter a full hot set.
  redis.call("ZADD", hot, unpack(entering))
  redis.call("ZREMRANGEBYRANK", hot, 0, -kept - 1)
  for band, members in pairs(moves) do
    if members ~= 0 and redis.call("HINCRBY", counts, band, members) == 0 then redis.call("HDEL", counts, band) end
  end
  redis.call("HINCRBY", counts, "points", string.format("%.0f", points))
  order(full, counts, bands, redis.call("HLEN", full), moved)
end
