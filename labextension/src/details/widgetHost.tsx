/** Shows a Lumino widget inside of a component. */
import { MessageLoop } from '@lumino/messaging';
import { Widget } from '@lumino/widgets';
import { type ReactElement, useEffect, useRef } from 'react';

type Props = {
  className: string;
  /** Makes the widget; a new function makes a new one. */
  create: () => Widget;
};

export function WidgetHost({ className, create }: Props): ReactElement {
  const host = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const widget = create();
    Widget.attach(widget, host.current!);
    const resize = () =>
      MessageLoop.sendMessage(widget, Widget.ResizeMessage.UnknownSize);
    const observer = new ResizeObserver(resize);
    observer.observe(host.current!);
    return () => {
      observer.disconnect();
      if (widget.isAttached) {
        Widget.detach(widget);
      }
      widget.dispose();
    };
  }, [create]);
  return <div className={className} ref={host} />;
}
