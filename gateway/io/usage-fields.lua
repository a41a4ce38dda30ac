-- Reads and writes the field of a tenant: whole numbers, separated by spaces. The scripts of a day begin with this file.

local function numbersIn(text)
  local numbers = {}
  for each in string.gmatch(text, "%S+") do numbers[#numbers + 1] = tonumber(each) end
  return numbers
end

-- "%.0f" writes whole numbers up to 2^53 in full. Lua would write a large number with an exponent.
local function textOf(numbers)
  local texts = {}
  for index, number in ipairs(numbers) do texts[index] = string.format("%.0f", number) end
  return table.concat(texts, " ")
end

