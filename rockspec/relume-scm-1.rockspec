-- The rock `relume`: what is required stays torch, nn, optim ... Build a checkout with `luarocks --lua-version=5.1 make` from its root.
rockspec_format = '3.0'
package = 'relume'
version = 'scm-1'
source = { url = 'file://.' }
description = {
   summary = 'Torch7 relit: tensors, autograd and neural networks for LuaJIT, with torch.compile.',
   detailed = [[A C core, Torch7's Lua interface, tape autograd, and a compiler that turns a whole training step into fused C code.
One build serves machines with and without a GPU: drivers are opened at run time.]],
   license = 'BSD-3-Clause',
}
dependencies = { 'lua >= 5.1, < 5.2' }
build = {
   type = 'command',
   build_command = 'cmake -S . -B build.luarocks -DCMAKE_BUILD_TYPE=Release -DCMAKE_INSTALL_PREFIX="$(PREFIX)"'
      .. ' -DRL_LUADIR="$(LUADIR)" -DRL_LIBDIR="$(LIBDIR)" -DRL_BINDIR="$(BINDIR)" && cmake --build build.luarocks --parallel',
   install_command = 'cmake --install build.luarocks',
}
