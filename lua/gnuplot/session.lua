-- Session: figures, each with a running gnuplot that reads commands (command -> window or file). Without the program gnuplot, or for
-- windows without a display, nothing is drawn and programs go on.
local paths = require 'paths'
local session = {current = nil, figures = {}}
local exe, told

--- Name of the program, nil where there is none.
function session.program()
   if exe == nil then exe = paths.findprogram 'gnuplot' or false end
   return exe or nil
end

--- Another program than the one on the PATH.
function session.setProgram(name)
   if not paths.filep(name) then error(('[gnuplot] program; got %s, which does not exist'):format(name), 3) end
   exe = name
end

local function quoted(text) return "'" .. text:gsub("'", "'\\''") .. "'" end

local function start()
   if not session.program() then
      if not told then io.stderr:write '[gnuplot] the program gnuplot is not installed: plots are left out. On Debian and Ubuntu: apt-get install gnuplot\n' end
      told = true
      return nil
   end
   return io.popen(quoted(session.program()) .. ' -persist', 'w')
end

-- Whether the figure can show itself: no file, and a display or a terminal that somebody chose.
local function shown(f)
   return not f.term and (session.term or os.getenv 'DISPLAY' or os.getenv 'WAYLAND_DISPLAY') ~= nil
end

--- Sends text to a figure.
function session.send(f, text)
   if not f.pipe then return end
   f.pipe:write(text, '\n')
   f.pipe:flush()
end

--- Sets the terminal of the figure; what is neither shown nor in a file goes nowhere.
function session.prepare(f)
   if shown(f) then
      session.send(f, 'unset output')
      if session.term then session.send(f, 'set term ' .. session.term) end
   else
      session.send(f, ('set term %s\nset output "/dev/null"'):format(f.term or 'dumb'))
   end
end

--- Makes figure n (a new one) the current one and returns it.
function session.figure(n)
   n = n or #session.figures + 1
   local f = session.figures[n]
   if not f then
      f = {n = n, pipe = start()}
      session.figures[n] = f
      session.prepare(f)
   end
   session.current = n
   return f
end

function session.get() return session.figures[session.current] or session.figure() end

--- Draws again what the figure shows, into its file where it has one.
function session.refresh(f)
   if not f.plotted then return end
   if f.fname then session.send(f, ('set output "%s"\nrefresh\nset output "/dev/null"'):format(f.fname)) else session.send(f, 'refresh') end
end

--- Draws a plot: its command and its data.
function session.plot(f, text)
   session.send(f, text)
   f.plotted = true
end

--- Ends a figure's program and waits for it: files are then written.
function session.close(n)
   local f = session.figures[n]
   if not f then return end
   session.refresh(f)
   session.figures[n] = nil
   if session.current == n then session.current = nil end
   if f.pipe then f.pipe:close() end
end

return session
