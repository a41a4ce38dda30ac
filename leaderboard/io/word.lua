-- Says a word where the last one is still there, or a later one of the same service. What Redis was put back to says an
-- older one: that stays, so that whoever comes next sees it too.
--
-- KEYS  the partition's progress
-- ARGV  the service that said the last word, its number, and the word to say
-- Returns 1, or 0 and nothing done.

local found = redis.call("GET", KEYS[1])
if not found then return 0 end
local word = cjson.decode(found)
if word.service ~= ARGV[1] or (word.number or 0) < tonumber(ARGV[2]) then return 0 end
redis.call("SET", KEYS[1], ARGV[3])
return 1
