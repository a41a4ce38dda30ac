-- Counts one batch of a room's activity in one atomic step: checks the room's counted mark, adds the points to every board,
-- and advances the mark. A repeated batch therefore counts once, and a former leaderboard's batch is rejected.
-- Numbers are doubles: exact integers up to 2^53, printed with %.0f only.
--
-- KEYS  applied; the hash of each cap; a key that never exists (`whole` in boards/keys.ts), so that Redis rejects the call
--       while the room's slot moves to another server
-- ARGV  1. number of members in a hot set
--       2. 1 if the members behind the hot set are kept in order too
--       3. the batch in JSON:
--          `after`    the seq, the activity and the time of the seq's edit that must be counted already
--          `applied`  fields and values of the new counted position
--          `uses`     for each cap: `begun` if a new period has begun, and `points` as users and points
--          `groups`   of boards that get the same awards: `members`, `points` and `stamps` of the awards, and `boards`, each
--                     as the keys hot, full and counts, and the prefix of its bands' keys
--       Values that are stored unchanged are strings, because a number that Lua prints may be rounded.
-- Returns an empty list; or, if the mark is not at `after`, the counted seq and activity. Nothing is written then.

local batch = cjson.decode(ARGV[3])
local seq, activity, time = unpack(redis.call("HMGET", KEYS[1], "seq", "activity", "time"))
seq, activity, time = seq or "0", activity or "0", time or "0"
local counted = { tonumber(seq), tonumber(activity), tonumber(time) }
for index, value in ipairs(batch.after) do if counted[index] ~= value then return { seq, activity } end end

hotMembers, isOrdered = tonumber(ARGV[1]), ARGV[2] == "1"

redis.call("HSET", KEYS[1], unpack(batch.applied))
for cap, use in ipairs(batch.uses) do
  if use.begun then redis.call("DEL", KEYS[1 + cap]) end
  if #use.points > 0 then redis.call("HSET", KEYS[1 + cap], unpack(use.points)) end
end

for _, group in ipairs(batch.groups) do
  for _, board in ipairs(group.boards) do add(group, unpack(board)) end
end
return {}
