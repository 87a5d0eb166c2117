/* Graphs in Lua: the userdata that lib/bind/plan.c adds `compile` to (metatable BIND_GRAPH, made by bind_open_graph). */
#ifndef RL_BIND_GRAPH_H
#define RL_BIND_GRAPH_H
#include "../graph/graph.h"
#include "bind.h"

#define BIND_GRAPH "relume.graph"
rl_graph *bind_graph(lua_State *L, int i);               /* the graph at index i; raises when there is none */
int bind_push_graph(lua_State *L, rl_graph *g);          /* takes g over; NULL raises the core's message */
int bind_push_mark(lua_State *L, const rl_generator *g); /* the state of a generator, a copy */
#endif
