-- Keeps a sanction unless the one that is kept of the same was made later, or lifts what was made at the same moment:
-- gateways save what they know in any order.
--
-- KEYS  the hash of all
-- ARGV  what it is about, and the sanction

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
