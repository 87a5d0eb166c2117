"""Relume and PyTorch on the benchmark workloads, taking turns (workloads -> table of medians and ratios, JSON).

Each workload and mode is a process that waits for its turn: a few steps of each, round by round, so that load from outside meets all alike.
Without PyTorch the peer's columns stay empty. Called by cpu.sh; see there.
"""
import argparse
import json
import math
import os
import statistics
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
NAMES = 'mlp lenet vae dqn fuse dlrm resnet18 unet charlstm gptmini vit bert gpt2 resnet50'.split()
KINDS = ['eager', 'compile', 'peer eager', 'peer compile']


class Worker:
    """A workload in one mode in its own process; turn(n) runs n steps."""

    def __init__(self, command, env):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env)
        self.times, self.mib, self.first = [], 0, None

    def turn(self, n):
        self.process.stdin.write('%d\n' % n)
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(self.process.stderr.read().strip()[-300:] or 'no answer')
        answer = json.loads(line)
        self.mib = answer['mib']
        return answer['ms']

    def close(self):
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            pipe.close()


def start(kind, name, threads, o):
    mode, peer = kind.split()[-1], kind.startswith('peer')
    env = dict(os.environ, OMP_NUM_THREADS=str(threads))
    extra = (['--infer'] if o.infer else []) + (['--cpu'] if o.cpu else [])
    if peer:
        return Worker([sys.executable, os.path.join(HERE, 'peer.py'), name, mode] + extra, env)
    return Worker(['luajit', os.path.join(HERE, 'run.lua'), '--only', name, '--modes', mode, '--serve'] + extra, env)


def measure(name, threads, kinds, o):
    row, workers = {'workload': name, 'threads': threads}, {}
    for kind in kinds:
        try:
            worker = start(kind, name, threads, o)
            workers[kind] = worker
            worker.first = worker.turn(1)[0] / 1e3
            worker.turn(2)
        except (RuntimeError, OSError, ValueError) as e:
            row[kind] = {'error': str(e)}
            if kind in workers:
                workers.pop(kind).close()
    for _ in range(o.rounds):
        for worker in workers.values():
            worker.times += worker.turn(o.steps)
    for kind, worker in workers.items():
        row[kind] = {'ms': statistics.median(worker.times), 'ms_min': min(worker.times), 'mib': worker.mib, 'first_s': worker.first}
        worker.close()
    return row


def ms(row, kind):
    return row.get(kind, {}).get('ms')


def ratio(row):
    """The better of the peer's modes over the compiled step."""
    peers = [v for v in (ms(row, 'peer eager'), ms(row, 'peer compile')) if v]
    return min(peers) / ms(row, 'compile') if peers and ms(row, 'compile') else None


def show(row):
    cell = lambda v, f='%10.2f': f % v if v else '%10s' % '-'
    line = '%-9s %2d' % (row['workload'], row['threads']) + ''.join(cell(ms(row, k)) for k in KINDS) + cell(ratio(row), '%9.2fx')
    line += ''.join('%8s' % (('%.2f' if f == 'first_s' else '%d') % row[k][f] if k in row and f in row[k] else '-') for k in ('compile', 'peer compile') for f in ('first_s', 'mib'))
    print(line, flush=True)
    for kind in KINDS:
        if 'error' in row.get(kind, {}):
            print('   %s: %s' % (kind, row[kind]['error']), flush=True)


def warn_of_development_build():
    """A build with RL_DEV has kernels for AVX2 alone: half the speed of AVX-512."""
    cache = os.path.join(HERE, '..', '..', os.environ.get('BUILD', 'build'), 'CMakeCache.txt')
    if os.path.exists(cache) and 'RL_DEV:BOOL=ON' in open(cache).read():
        print('The build is one for development (RL_DEV): build with `make` before comparing.')


def main():
    p = argparse.ArgumentParser()
    p.add_argument('--only', default=','.join(NAMES))
    p.add_argument('--threads', default='1,2')
    p.add_argument('--kinds', default=','.join(KINDS))
    p.add_argument('--rounds', type=int, default=5)
    p.add_argument('--steps', type=int, default=2)
    p.add_argument('--infer', action='store_true')
    p.add_argument('--cpu', action='store_true', help="the processes' own time: for one thread on a busy machine")
    p.add_argument('--json', default='')
    o = p.parse_args()
    kinds = o.kinds.split(',')
    warn_of_development_build()
    if subprocess.run([sys.executable, '-c', 'import torch'], stderr=subprocess.DEVNULL).returncode:
        print('PyTorch is not installed for %s: own figures only' % os.path.basename(sys.executable))
        kinds = [k for k in kinds if not k.startswith('peer')]
    print('%-9s %2s%10s%10s%10s%10s%10s%8s%8s%8s%8s' % ('workload', 'th', *KINDS[:2], 'p.eager', 'p.compile', 'ratio', 'first s', 'MiB', 'p.first', 'p.MiB'))
    rows = []
    for threads in map(int, o.threads.split(',')):
        for name in o.only.split(','):
            rows.append(measure(name, threads, kinds, o))
            show(rows[-1])
            if o.json:
                with open(o.json, 'w') as f:
                    json.dump(rows, f, indent=1)
        good = [ratio(r) for r in rows if r['threads'] == threads and ratio(r)]
        if good:
            print('%d threads: geometric mean %.2fx, least %.2fx' % (threads, math.exp(sum(map(math.log, good)) / len(good)), min(good)), flush=True)


if __name__ == '__main__':
    main()
