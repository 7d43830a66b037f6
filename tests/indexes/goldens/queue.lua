local M = {}
-- How many wait at most.
local LIMIT = 10

--- A queue of tasks.
-- @class Queue
local Queue = {}
Queue.__index = Queue

function Queue.new(limit)
  local self = setmetatable({}, Queue)
  local function inner() end
  return self
end

function Queue:push(task, ...)
  if task then table.insert(self, task) end
end

local function helper(a)
  return a
end

M.pop = function(queue) return table.remove(queue) end
local later = function() end

M.handlers = {
  start = function() end,
  stop = helper,
}

return M
