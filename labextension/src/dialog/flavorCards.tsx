/** The choice of a flavor, as cards, and of one of its devices. */
import type { TranslationBundle } from '@jupyterlab/translation';
import { type ReactElement, useId } from 'react';

import type { Catalog, Device, Flavor } from '../api';
import {
  type Isolation,
  listDevices,
  unavailableReason
} from '../jobs/catalog';
import { formatDuration, formatMemory, parseCpus } from '../ui/format';
import type { ModelProps } from './section';

/** The flavors as radio buttons that look like cards. */
export function FlavorCards({ model }: ModelProps): ReactElement {
  const { catalog, trans } = model;
  return (
    <fieldset className="jp-ToJobDialog-choice" role="radiogroup">
      <legend>{trans.__('Flavor: how much it gets')}</legend>
      <div className="jp-ToJobDialog-cards">
        {catalog === null ? (
          <div
            className="jp-ToJobDialog-card jp-mod-empty"
            aria-hidden="true"
          />
        ) : (
          Object.keys(catalog.flavors).map(name => (
            <FlavorCard
              key={name}
              model={model}
              catalog={catalog}
              name={name}
            />
          ))
        )}
      </div>
    </fieldset>
  );
}

type CardProps = ModelProps & { catalog: Catalog; name: string };

function FlavorCard({ model, catalog, name }: CardProps): ReactElement {
  const { trans } = model;
  const flavor = catalog.flavors[name]!;
  const isChosen = model.flavor === name;
  const unavailable = unavailableReason(catalog, name);
  const id = useId();
  const reason = unavailable === '' ? trans.__('Not for you.') : unavailable;
  const classes = [
    'jp-ToJobDialog-card',
    isChosen && 'jp-mod-selected',
    reason !== null && 'jp-mod-unavailable'
  ];
  return (
    <label className={classes.filter(Boolean).join(' ')}>
      <input
        type="radio"
        name="jp-ToJobDialog-flavor"
        value={name}
        checked={isChosen}
        disabled={reason !== null}
        onChange={() => model.chooseFlavor(name)}
        aria-labelledby={`${id}-title ${id}-facts`}
        aria-describedby={`${id}-rest`}
      />
      <span id={`${id}-title`} className="jp-ToJobDialog-title">
        {flavor.title || name}
      </span>
      <span id={`${id}-facts`} className="jp-ToJobDialog-facts">
        {amountsText(flavor, trans)}
      </span>
      <span id={`${id}-rest`} className="jp-ToJobDialog-words">
        {flavor.max_runtime !== null && (
          <span className="jp-ToJobDialog-facts">
            {trans.__('At most %1', formatDuration(flavor.max_runtime, trans))}
          </span>
        )}
        {reason !== null ? (
          <span className="jp-ToJobDialog-reason">{reason}</span>
        ) : (
          <span className="jp-ToJobDialog-help">{flavor.description}</span>
        )}
      </span>
    </label>
  );
}

/** The resources of a flavor, in one line. */
function amountsText(flavor: Flavor, trans: TranslationBundle): string {
  const amount = parseCpus(flavor.cpu);
  return [
    trans._n('%2 CPU', '%2 CPUs', amount, amount),
    formatMemory(flavor.memory),
    flavor.gpus > 0 && trans._n('%1 GPU', '%1 GPUs', flavor.gpus)
  ]
    .filter(Boolean)
    .join(' · ');
}

/** The devices of the chosen flavor; a single one is shown without a radio button. */
export function DeviceChoice({ model }: ModelProps): ReactElement | null {
  const { catalog, trans } = model;
  const devices = catalog === null ? [] : listDevices(catalog, model.flavor);
  const isChoice = devices.length > 1;
  return devices.length === 0 ? null : (
    <fieldset
      className="jp-ToJobDialog-choice"
      role={isChoice ? 'radiogroup' : undefined}
    >
      <legend>{trans.__('Device: which kind it runs on')}</legend>
      {devices.map(([name, device]) => (
        <DeviceOption
          key={name}
          model={model}
          name={name}
          device={device}
          isChoice={isChoice}
        />
      ))}
    </fieldset>
  );
}

type DeviceProps = ModelProps & {
  name: string;
  device: Device;
  isChoice: boolean;
};

function DeviceOption(props: DeviceProps): ReactElement {
  const { model, name, device, isChoice } = props;
  const { trans } = model;
  const { title, description } = device;
  const id = useId();
  const free = freeText(device, trans);
  const details = [
    description,
    device.isolation && isolationText(device.isolation, trans)
  ];
  return (
    <label className="jp-ToJobDialog-device">
      {isChoice && (
        <input
          type="radio"
          name="jp-ToJobDialog-device"
          value={name}
          checked={model.device === name}
          onChange={() => model.chooseDevice(name)}
          aria-labelledby={`${id}-title`}
          aria-describedby={`${id}-rest`}
        />
      )}
      <span>
        <span id={`${id}-title`} className="jp-ToJobDialog-title">
          {title || name}
        </span>
        <span id={`${id}-rest`}>
          {free !== null && <span className="jp-ToJobDialog-free">{free}</span>}
          {details.filter(Boolean).map(text => (
            <span key={text} className="jp-ToJobDialog-help">
              {text}
            </span>
          ))}
        </span>
      </span>
    </label>
  );
}

/** How many units of a device are free; null if nothing is known. */
export function freeText(
  { free, total, autoscaled }: Device,
  trans: TranslationBundle
): string | null {
  if (total !== null) {
    return free === null
      ? trans.__('%1 in all', total)
      : trans.__('%1 of %2 free now', free, total);
  }
  if (!autoscaled) {
    return null;
  }
  return free === null
    ? trans.__('More are added when needed')
    : trans.__('%1 free now, more are added when needed', free);
}

function isolationText(kind: Isolation, trans: TranslationBundle): string {
  switch (kind) {
    case 'full':
      return trans.__('All of it is yours while the job runs.');
    case 'hardware':
      return trans.__(
        'A part of a GPU that the hardware itself keeps apart from its neighbours.'
      );
    case 'software':
      return trans.__(
        'Shares the GPU with others: software keeps you to your share (software isolation).'
      );
    case 'none':
      return trans.__(
        'Shares the GPU with others and nothing keeps you apart: memory and speed depend on them.'
      );
  }
}
