import { CpuSet } from '../../model/cpu-set.ts';
import { createHost } from '../../model/host.ts';
import type { Hint, ProviderHints } from '../../model/kubelet/hints.ts';
import { createKubelet } from '../../model/kubelet/kubelet.ts';
import { mergeHints, type TopologyPolicy } from '../../model/kubelet/merge.ts';
import { OptionError, readTopologyOptions } from '../../model/kubelet/options.ts';
import { type FixtureHint, type UpstreamCase, type UpstreamFile, upstreamCases } from './kubelet-upstream.ts';
import { type Adapter, differs, type Verdict } from './outcome.ts';

type Provider = Readonly<Record<string, readonly FixtureHint[] | null>> | null;

interface TopologyCase extends UpstreamCase {
  readonly kind: 'merge' | 'canAdmit' | 'admit' | 'options' | 'manager';
  readonly policy: TopologyPolicy;
  readonly scope?: string;
  readonly preferClosestNUMA?: boolean;
  readonly preferred?: boolean;
  readonly numaNodes?: number;
  readonly options?: Readonly<Record<string, string>>;
  readonly providersHints?: readonly Provider[];
  readonly expect: unknown;
}

interface TopologyFile extends UpstreamFile<TopologyCase> {
  readonly numaDistances: Readonly<Record<string, Readonly<Record<string, readonly number[]>>>>;
}

/** kubelet-topologymanager-cases.json: the kubelet's own unit tests of the topology manager. */
export const run: Adapter = (content) => {
  const file = content as TopologyFile;
  return upstreamCases(file, (item, _behaviour, version) => {
    if (item.kind === 'options') return readOptions(item);
    if (item.kind === 'manager') return differs({ error: isRefused(item, version) }, item.expect);
    const { hint, admit } = merged(item, file);
    return differs(
      item.kind === 'merge' ? { numaNodes: nodesOf(hint), preferred: hint.preferred, admit } : admit,
      item.expect,
    );
  });
};

function merged({ policy, numaNodes = 2, preferClosestNUMA, ...item }: TopologyCase, { numaDistances }: TopologyFile) {
  const closest = preferClosestNUMA && policy !== 'single-numa-node';
  const distances = Object.values(numaDistances[numaNodes] ?? {});
  const numa = { all: 2 ** numaNodes - 1, ...(closest && { distances }) };
  const single: Provider = { resource: [{ numaNodes: [0], preferred: item.preferred ?? false }] };
  return mergeHints(policy, numa, (item.providersHints ?? [single]).map(providerOf));
}

function readOptions({ options, expect }: TopologyCase): Verdict {
  const { error, PreferClosestNUMA = false, MaxAllowableNUMANodes } = expect as Record<string, unknown>;
  try {
    const { preferClosest, maxCells } = readTopologyOptions(options);
    return error
      ? `expected the error ${error}`
      : differs([preferClosest, maxCells], [PreferClosestNUMA, MaxAllowableNUMANodes]);
  } catch (cause) {
    if (cause instanceof OptionError) return error ? undefined : cause.message;
    throw cause;
  }
}

/** Whether a kubelet with this topology manager does not start, and is therefore not predicted. */
function isRefused({ policy, scope, options, numaNodes = 1 }: TopologyCase, version: string): boolean {
  const ids = Array.from({ length: numaNodes }, (_, id) => id);
  const host = createHost({ cells: ids.map((id) => ({ id, cpus: `${id}` })), cores: ids.map(String) });
  const topologyManager = { policy, scope, options };
  const kubelet = createKubelet({
    version,
    host,
    cpuManager: { policy: 'none' },
    topologyManager,
    reserved: CpuSet.EMPTY,
  });
  return 'unpredictable' in kubelet;
}

function providerOf(provider: Provider): ProviderHints {
  if (provider === null) return null;
  return new Map(Object.entries(provider).map(([resource, hints]) => [resource, hints?.map(hintOf) ?? null]));
}

function hintOf({ numaNodes, preferred }: FixtureHint): Hint {
  return { mask: numaNodes?.reduce((mask, node) => mask | (1 << node), 0) ?? null, preferred };
}

function nodesOf({ mask }: Hint): readonly number[] | null {
  return mask === null ? null : Array.from({ length: 31 }, (_, bit) => bit).filter((bit) => (mask & (1 << bit)) !== 0);
}
