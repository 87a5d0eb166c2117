-- Manual: the reasons of graph breaks (jit/breaks.lua -> doc/breaks.md).
-- luajit lib/gen/breaks.lua doc/breaks.md
local breaks = dofile 'jit/breaks.lua'

local ids = {}
for id in pairs(breaks.reasons) do ids[#ids + 1] = id end
table.sort(ids)

local out = { [[
# Graph breaks

Written by `make docs` from `jit/breaks.lua`; edit that.

What capture does not understand ends a graph. The results stay those of eager. A break that *resumes* runs the one instruction in the real VM; the code
before, behind and inside of it is still compiled. Any other leaves the closure, or the part of it behind an earlier break, to eager.

`torch.explain(f, ...)` lists the breaks of a call with source lines; `RELUME_DEBUG=1` prints each when it is met; `torch.compile(f, {fullgraph = true})`
raises the first. The dots stand for what was met.

| id | resumes | what | what to do |
|---|---|---|---|]] }

local function cell(text) return (text:gsub('%%s', '...'):gsub('|', '\\|'):gsub('\n%s*', ' ')) end

for _, id in ipairs(ids) do
   local sentence, hint = breaks.reasons[id][1], breaks.reasons[id][2]
   out[#out + 1] = ('| `%s` | %s | %s | %s |'):format(id, breaks.resumable[id] and 'yes' or 'no', cell(sentence), cell(hint))
end

local file = assert(io.open(arg[1] or 'doc/breaks.md', 'w'))
file:write(table.concat(out, '\n'), '\n')
file:close()
