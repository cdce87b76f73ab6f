-- The race's loader, for wrk. Arguments after `--`: verb, path prefix, token, body size, how many names there are
-- (0: a new name for every request), a limit of requests for each thread (comma separated, 0: none), a query.
-- Names are <prefix><thread>-<number>; threads are numbered from 1. `done` prints one line of JSON.

local threads = {}

function setup(thread)
   table.insert(threads, thread)
   thread:set("id", #threads)
end

function init(args)
   verb, prefix, token = args[1], args[2], args[3]
   size, names = tonumber(args[4]), tonumber(args[5])
   local limits = {}
   for number in string.gmatch(args[6], "%d+") do table.insert(limits, tonumber(number)) end
   limit = limits[id] or limits[1]
   query = args[7] or ""
   pages = {}
   if verb == "LIST" then
      for page = 0, 9 do
         pages[page] = wrk.format("GET", prefix .. "?format=json&marker=" .. string.format("object-%06d", page * 10000),
                                  { ["X-Auth-Token"] = token })
      end
   end
   local head = "Host: " .. wrk.host .. ":" .. wrk.port .. "\r\nX-Auth-Token: " .. token .. "\r\n"
   if verb == "PUT" then
      tail = query .. " HTTP/1.1\r\n" .. head .. "Content-Type: application/octet-stream\r\nContent-Length: " .. size
             .. "\r\n\r\n" .. string.rep("m", size)
   else
      tail = query .. " HTTP/1.1\r\n" .. head .. "\r\n"
   end
   start = verb .. " " .. prefix
   counter, finished, wrong = 0, 0, 0
end

function request()
   counter = counter + 1
   if verb == "LIST" then
      return pages[counter % 10]
   end
   local owner, number = id, counter
   if names > 0 then
      owner, number = 1, (counter * 7 + id * 3) % names + 1
   end
   return start .. owner .. "-" .. number .. tail
end

function response(status, headers, body)
   finished = finished + 1
   if status < 200 or status > 299 then
      wrong = wrong + 1
   end
   if limit > 0 and finished >= limit then
      wrk.thread:stop()
   end
end

function done(summary, latency, requests)
   local counters, wrong = {}, 0
   for _, thread in ipairs(threads) do
      table.insert(counters, tostring(thread:get("counter")))
      wrong = wrong + thread:get("wrong")
   end
   local errors = summary.errors
   io.write(string.format(
      '\nRESULT {"requests": %d, "microseconds": %d, "p50": %d, "p99": %d, "wrong": %d, "broken": %d, "counters": [%s]}\n',
      summary.requests, summary.duration, latency:percentile(50), latency:percentile(99), wrong,
      errors.connect + errors.read + errors.write + errors.timeout, table.concat(counters, ", ")))
end
