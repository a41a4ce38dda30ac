-- Stores a sanction. The stored sanction of the same target stays if it was made later. It also stays if both were made at
-- the same moment, unless only the new one lifts the restriction. So gateways may store their sanctions in any order.
--
-- KEYS  the hash of all sanctions
-- ARGV  the target, and the sanction

local kept = redis.call("HGET", KEYS[1], ARGV[1])
if kept then
  local isRead, before = pcall(cjson.decode, kept)
  local made = cjson.decode(ARGV[2])
  if isRead and type(before) == "table" and type(before.madeAt) == "number" then
    if before.madeAt > made.madeAt then return end
    if before.madeAt == made.madeAt and (before.lifted or not made.lifted) then return end
  end
end
redis.call("HSET", KEYS[1], ARGV[1], ARGV[2])
