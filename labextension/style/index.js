import './base.css';
import './dialog.css';
import './notify.css';
import './panel.css';
import './results.css';
import './widgets.css';
