-- FistaLS: accelerated proximal gradient with backtracking (Beck and Teboulle, 2009) (f smooth, g not -> x that makes f + g small).

-- Finds L so that the quadratic model at y bounds f at pl(y - grad / L); returns L, the point, f and g there, tries.
local function backtrack(f, g, pl, y, fy, grad, L, params)
   local point = params.ply
   for tries = 0, params.maxline do
      point:copy(y):add(-1 / L, grad)
      pl(point, L)
      local fp, gp = f(point), g(point)
      local step = torch.csub(point, y)
      local model = fy + step:dot(grad) + L / 2 * step:dot(step) + gp
      if fp + gp <= model or tries == params.maxline then return L, fp, gp, tries end
      L = L * params.Lstep
   end
end

--- optim.FistaLS(f, g, pl, xinit [, params]): f(x, 'dx') gives value and gradient, f(x) and g(x) values; pl(x, L) solves the proximal
-- problem of g in place. params: L (0.1), Lstep (1.5), maxiter (50), maxline (20), errthres (1e-4), doFistaUpdate (true), verbose; L is left as found.
-- Returns x and a history of {nline, L, F, Ft, k} entries, one an iteration (the points as well when verbose).
return function(f, g, pl, xinit, params)
   params = params or {}
   local defaults = {L = 0.1, Lstep = 1.5, maxiter = 50, maxline = 20, errthres = 1e-4, doFistaUpdate = true, verbose = false}
   for k, v in pairs(defaults) do
      if params[k] == nil then params[k] = v end
   end
   for _, name in ipairs{'xkm', 'y', 'ply'} do
      params[name] = params[name] or xinit.new()
      params[name]:resizeAs(xinit):copy(xinit)
   end
   local xk, y, xkm = xinit:clone(), params.y, params.xkm
   local t, L, history, last = 1, params.L, {}, math.huge
   for k = 1, params.maxiter do
      local fy, grad = f(y, 'dx')
      grad = grad:clone()
      local fp, gp, tries
      L, fp, gp, tries = backtrack(f, g, pl, y, fy, grad, L, params)
      xkm:copy(xk)
      xk:copy(params.ply)
      history[k] = {k = k, L = L, nline = tries, F = fp + gp, H = fp, Ft = fp + gp, x = params.verbose and xk:clone() or nil}
      if params.verbose then print(('FISTA %d: L = %g, F = %g, line searches %d'):format(k, L, fp + gp, tries)) end
      if math.abs(last - fp - gp) <= params.errthres * math.abs(fp + gp) then break end
      last = fp + gp
      y:copy(xk)
      if params.doFistaUpdate then
         local t1 = (1 + math.sqrt(1 + 4 * t * t)) / 2
         y:add((t - 1) / t1, torch.csub(xk, xkm))
         t = t1
      end
   end
   params.L = L
   return xk, history
end
