import { ParseError } from '../../model/errors.ts';
import { NAD_PHYSNET_ANNOTATION } from '../../model/names.ts';
import { parseAttachments } from '../../model/networks/attachments.ts';
import {
  type KubeOvnSubnet,
  type KubeOvnVlan,
  type NetworkContext,
  parseConfiguredContext,
} from '../../model/networks/context.ts';
import { classifyNad, type NetworkClass, nadFacts } from '../../model/networks/nad.ts';
import { type Adapter, differs, type Verdict } from './outcome.ts';

type NadShape = Parameters<typeof nadFacts>[0];

interface Vectors {
  readonly context: {
    readonly bridgeMappings: string;
    readonly interfacePhysnets: Record<string, string>;
    readonly kubeovnSubnets: readonly KubeOvnSubnet[];
    readonly kubeovnVlans: readonly KubeOvnVlan[];
  };
  readonly samples: readonly {
    readonly id: string;
    readonly nad: NadShape;
    readonly expected: Record<string, string>;
  }[];
  readonly annotations: readonly {
    readonly annotation: string;
    readonly podNamespace: string;
    readonly expected?: readonly Record<string, string>[];
    readonly error?: boolean;
  }[];
}

/** The vectors' stand-in for the annotation that a project names for itself. */
const PLACEHOLDER = 'example.io/physnet';

/** nads.json: where a definition's traffic leaves the host, and multus's annotation in both forms. */
export const run: Adapter = (content) => {
  const { context, samples, annotations } = content as Vectors;
  const known: NetworkContext = {
    bridgePhysnets: parseConfiguredContext({ bridgeMappings: context.bridgeMappings }).bridgePhysnets,
    interfacePhysnets: new Map(Object.entries(context.interfacePhysnets)),
    kubeOvnSubnets: context.kubeovnSubnets,
    kubeOvnVlans: context.kubeovnVlans,
  };
  return [
    ...samples.map(({ id, nad, expected }) => ({
      name: id,
      check: () => differs(sorted(asVector(classifyNad(nadFacts(withOwnKey(nad)), known))), sorted(expected)),
    })),
    ...annotations.map((one) => ({ name: `annotation ${one.annotation}`, check: () => checkAnnotation(one) })),
  ];
};

function checkAnnotation({ annotation, podNamespace, expected, error }: Vectors['annotations'][number]): Verdict {
  try {
    return differs(parseAttachments(annotation, podNamespace), error === true ? 'an error' : expected);
  } catch (refusal) {
    if (error === true && refusal instanceof ParseError) return undefined;
    throw refusal;
  }
}

/** The vectors fold "a device of its own" into "none": both have no physnet. */
function asVector(found: NetworkClass): Record<string, string> {
  return { ...found, kind: found.kind === 'device' ? 'none' : found.kind };
}

function withOwnKey(nad: NadShape): NadShape {
  const physnet = nad.metadata.annotations?.[PLACEHOLDER];
  if (physnet === undefined) return nad;
  return { ...nad, metadata: { ...nad.metadata, annotations: { [NAD_PHYSNET_ANNOTATION]: physnet } } };
}

function sorted(record: Record<string, string>): [string, string][] {
  return Object.entries(record).sort(([a], [b]) => (a < b ? -1 : 1));
}
