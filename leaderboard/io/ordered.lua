-- Reads consecutive places of a board whose members are all kept in order, band by band. Ranks are exact on a board of any
-- size. All bands are read in one step, so that a member that moves to another band is counted exactly once.
--
-- KEYS  full; counts; the prefix of the keys of the bands' sorted sets
-- ARGV  a member and the number of places around it; or an empty string, the first place (from 0), and the number of places
-- Returns an empty list if not all members are in order, or if the member is missing. Otherwise: the first returned place
-- (from 0); the number of members with more points than that place; then, for each place, stamp and member, and score.

if redis.call("HGET", KEYS[2], "ordered") ~= "1" then return {} end
local sizes, bands = {}, {}
local flat = redis.call("HGETALL", KEYS[2])
for index = 1, #flat, 2 do
  local band = tonumber(flat[index])
  if band then
    bands[#bands + 1] = band
    sizes[band] = tonumber(flat[index + 1])
  end
end
table.sort(bands, function(a, b) return a > b end)

local first, count
if ARGV[1] == "" then
  first, count = tonumber(ARGV[2]), tonumber(ARGV[3])
else
  local own = redis.call("HGET", KEYS[1], ARGV[1])
  if not own then return {} end
  local band, ahead = bandOf(tonumber(string.sub(own, STAMP + 1))), 0
  for _, other in ipairs(bands) do if other > band then ahead = ahead + sizes[other] end end
  local place = ahead + redis.call("ZREVRANK", KEYS[3] .. string.format("%d", band), string.sub(own, 1, STAMP) .. ARGV[1])
  first = math.max(0, place - tonumber(ARGV[2]))
  count = place - first + tonumber(ARGV[2]) + 1
end

local answer, before, left = { first, 0 }, 0, count
for _, band in ipairs(bands) do
  if left == 0 then break end
  if first < before + sizes[band] then
    local from = math.max(0, first - before)
    local key = KEYS[3] .. string.format("%d", band)
    local entries = redis.call("ZREVRANGE", key, from, from + left - 1, "WITHSCORES")
    if #answer == 2 and #entries > 0 then answer[2] = before + redis.call("ZCOUNT", key, "(" .. entries[2], "+inf") end
    for _, part in ipairs(entries) do answer[#answer + 1] = part end
    left = left - #entries / 2
  end
  before = before + sizes[band]
end
return answer
