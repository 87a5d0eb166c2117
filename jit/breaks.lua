-- Graph breaks: the registry of reasons (id -> sentence, hint). A capture that meets one stops; what can be run alone runs in the real VM
-- and capture resumes behind it, else the closure runs eagerly.

local M = {}

-- id = {sentence, hint}; %s is the detail of the place.
M.reasons = {
   ['data-dependent'] = {'control flow needs the value of a number that comes from a tensor (%s)',
      'use tensor ops such as where or cmul, or keep the test outside of the compiled function'},
   ['needs-values'] = {'%s needs the values of a tensor, which are not known while capturing',
      'move the call out of the compiled function, or mark its function with torch.compiler.disable'},
   ['c-function'] = {'call of a C function that capture does not know (%s)',
      'move the call out of the compiled function'},
   ['disabled'] = {'call of %s, marked by torch.compiler.disable', 'remove the mark, or call it outside'},
   ['side-effect'] = {'%s acts outside of the program (output, files, clock, random numbers of Lua)',
      'move it out of the compiled function'},
   ['callback'] = {'a Lua function is given to %s', 'write the loop with tensor ops'},
   ['coroutine'] = {'a coroutine that does not live and end in captured code (%s)', 'yield outside of the compiled function'},
   ['error-in-pcall'] = {'a run-time error inside of pcall (%s)', 'test for the condition instead of catching the error'},
   ['too-long'] = {'more than %s instructions were evaluated', 'a loop runs too often; compile its body instead'},
   ['opcode'] = {'bytecode instruction %s is not evaluated', 'report this as a bug'},
   ['escape'] = {'%s leaves the compiled function and cannot be rebuilt', 'return a tensor, number or table instead'},
   ['grad-escapes'] = {'the gradient of a tensor that leaves the compiled function cannot be compiled (%s)',
      'call backward inside of the compiled function, or detach the tensor'},
   ['backward-outside'] = {'random ops whose backward is not inside of the compiled function (forward of %s)',
      'compile the whole step, or call evaluate() first: a backward outside would draw other random numbers'},
   ['history'] = {'a gradient taken inside runs on into code outside (%s)', 'call backward outside, or compile the code that made the tensor too'},
   ['changing-string'] = {'a string is another one at each call (%s)', 'format text outside of the compiled function'},
   ['table-key'] = {'a table key is not known (%s)', 'use strings or numbers as keys'},
   ['metatable'] = {'%s of a table that capture cannot evaluate', 'use a plain table'},
   ['compile-failed'] = {'the compiler refused the graph: %s', 'report this as a bug'},
   ['internal'] = {'capture failed: %s', 'report this as a bug'},
}

-- Breaks behind which capture resumes; the others leave the whole closure to eager.
M.resumable = {['data-dependent'] = true, ['needs-values'] = true, ['c-function'] = true, disabled = true, ['side-effect'] = true, callback = true,
   coroutine = true, history = true, ['error-in-pcall'] = true, metatable = true, opcode = true, ['table-key'] = true,
   ['changing-string'] = true}

-- Raised where capture was told to stop.
M.STOP = {}
-- Raised where capture has to begin again: something that it took for granted does not hold (the marks say what).
M.AGAIN = {}

local Break = {}
Break.__index = Break
Break.__tostring = function(b) return b:message() end

--- Sentence, place and hint as one text.
function Break:message()
   return ('[compile] graph break %s at %s: %s; %s'):format(self.id, self.where or '?', self.sentence, self.hint)
end

--- A break object; where is filled in by the evaluator that raises it.
function M.new(id, detail, where)
   local r = assert(M.reasons[id], id)
   return setmetatable({id = id, detail = detail, where = where, sentence = (r[1]:gsub('%%s', function() return tostring(detail) end)),
      hint = r[2]}, Break)
end

function M.is(e) return getmetatable(e) == Break end

-- An error that the evaluated program raised (a value of the program, not of capture).
local Raised = {}
M.Raised = Raised
-- thrown: it was raised by error or assert; level: how many levels above the compiled function its position is taken, 0: it is in the message.
function M.raised(value, runtime, level) return setmetatable({value = value, runtime = runtime, thrown = not runtime, level = level}, Raised) end
function M.isRaised(e) return getmetatable(e) == Raised end

return M
