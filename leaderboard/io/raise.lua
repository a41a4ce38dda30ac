-- Raises the scores of a room in its tenant's boards in one atomic step. Each member has a part per room: the score in that
-- room as it was last added. Only the difference to the part is added, and no score falls. The time of a room's last point
-- only becomes later. So a call may be repeated at any time and in any order, and the next one repairs a missed one.
--
-- KEYS  a key that never exists (`whole` in boards/keys.ts); a board's hash of parts, so that Redis rejects the call while
--       the tenant's slot moves to another server; the mark of the deleted room, whose points are not added
-- ARGV  1. number of members in a hot set
--       2. 1 if the members behind the hot set are kept in order too
--       3. in JSON, boards, each with its `keys`, the key of its `parts`, and `members` with `scores` and `stamps` in the room.
--          A board of rooms has one member, and its own hash of all members is the hash of parts.
-- Returns nothing.

if redis.call("GET", KEYS[3]) then return end
hotMembers, isOrdered = tonumber(ARGV[1]), ARGV[2] == "1"

for _, board in ipairs(cjson.decode(ARGV[3])) do
  local _, full = unpack(board.keys)
  local parts = redis.call("HMGET", board.parts, unpack(board.members))
  local risen, raised = { members = {}, points = {}, stamps = {} }, {}
  for index, member in ipairs(board.members) do
    local part, stamp = parts[index], board.stamps[index]
    local more = tonumber(board.scores[index]) - (part and tonumber(string.sub(part, STAMP + 1)) or 0)
    -- A room's total may have been sent before the stamp of its last point, with the stamp of an earlier one.
    local isReachedLater = part and board.parts == full and later(part, stamp) == stamp
    if more > 0 or isReachedLater then
      risen.members[#risen.members + 1] = member
      risen.points[#risen.points + 1] = math.max(0, more)
      risen.stamps[#risen.stamps + 1] = stamp
      raised[#raised + 1] = member
      raised[#raised + 1] = stamp .. board.scores[index]
    end
  end
  if #raised > 0 then
    add(risen, unpack(board.keys))
    if board.parts ~= full then redis.call("HSET", board.parts, unpack(raised)) end
  end
end
