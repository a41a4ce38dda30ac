-- Restores a room's boards from a checkpoint, unless Redis has counted as much or more.
--
-- KEYS  applied; the hash of each cap; a key that never exists, so that Redis rejects the call while the room's slot moves;
--       the room's names
-- ARGV  1. number of members in a hot set
--       2. 1 if the members behind the hot set are kept in order too
--       3. the checkpoint in JSON:
--          `through`  its seq, activity and time; the later time is farther, because a log that lost its end assigns seqs again
--          `applied`  fields and values of the counted position
--          `uses`     for each cap, users and points
--          `names`    users and display names
--          `boards`   each with its `keys`, and its `members` by rank with `stamps` and `scores`
-- Returns an empty list; or, if Redis has counted as much, the counted seq and activity. Nothing is written then.

local checkpoint = cjson.decode(ARGV[3])
local seq, activity, time = unpack(redis.call("HMGET", KEYS[1], "seq", "activity", "time"))
seq, activity = seq or "0", activity or "0"
local isAsFar = tonumber(seq) >= checkpoint.through[1]
if time and tonumber(time) ~= checkpoint.through[3] then isAsFar = tonumber(time) > checkpoint.through[3] end
if isAsFar and tonumber(activity) >= checkpoint.through[2] then return { seq, activity } end

hotMembers, isOrdered = tonumber(ARGV[1]), ARGV[2] == "1"

-- Writes many pairs of one key per call. Single calls would double the time for a large board.
local AT_ONCE = 1000
local function writer(command, key)
  local parts, writes = {}, {}
  function writes.flush()
    if #parts > 0 then redis.call(command, key, unpack(parts)) end
    parts = {}
  end
  function writes.put(first, second)
    parts[#parts + 1] = first
    parts[#parts + 1] = second
    if #parts >= AT_ONCE then writes.flush() end
  end
  return writes
end

redis.call("DEL", unpack(KEYS, 1, #KEYS - 1))
redis.call("HSET", KEYS[1], unpack(checkpoint.applied))
for cap, points in ipairs(checkpoint.uses) do
  local use = writer("HSET", KEYS[1 + cap])
  for index = 1, #points, 2 do use.put(points[index], points[index + 1]) end
  use.flush()
end

local names = writer("HSET", KEYS[#KEYS])
for index = 1, #checkpoint.names, 2 do names.put(checkpoint.names[index], checkpoint.names[index + 1]) end
names.flush()

for _, board in ipairs(checkpoint.boards) do
  local hot, full, counts, beginning = unpack(board.keys)
  for _, band in ipairs(redis.call("HKEYS", counts)) do if tonumber(band) then redis.call("UNLINK", beginning .. band) end end
  redis.call("DEL", hot, full, counts)
  local bands, points = {}, 0
  local all, first, tail = writer("HSET", full), writer("ZADD", hot), {}
  local hasTail = isOrdered and #board.members > hotMembers
  for rank, member in ipairs(board.members) do
    local stamp, score = board.stamps[rank], board.scores[rank]
    local number = tonumber(score)
    local band = bandOf(number)
    all.put(member, stamp .. score)
    if rank <= hotMembers then first.put(score, stamp .. member) end
    points = points + number
    bands[band] = (bands[band] or 0) + 1
    if hasTail then
      tail[band] = tail[band] or writer("ZADD", beginning .. string.format("%d", band))
      tail[band].put(score, stamp .. member)
    end
  end
  all.flush()
  first.flush()
  for _, ofBand in pairs(tail) do ofBand.flush() end
  for band, members in pairs(bands) do redis.call("HSET", counts, band, members) end
  redis.call("HSET", counts, "points", string.format("%.0f", points))
  if hasTail then redis.call("HSET", counts, "ordered", "1") end
end
return {}
